//! CORE: types of C++ as its programmers write them: `std::map<std::string, int>` is 300 characters long with all that
//! the library fills in.

use std::borrow::Cow;

/// What the library fills in at the end of the arguments, where nobody chose another one. `{0}` and `{1}` stand for the
/// first arguments.
const FILLED_IN: [(&[&str], &[&str]); 6] = [
    (&["basic_string", "basic_string_view"], &["std::char_traits<{0}>", "std::allocator<{0}>"]),
    (&["deque", "forward_list", "list", "vector"], &["std::allocator<{0}>"]),
    (&["set", "multiset"], &["std::less<{0}>", "std::allocator<{0}>"]),
    (&["map", "multimap"], &["std::less<{0}>", PAIRS, OTHER_PAIRS]),
    (&["unique_ptr"], &["std::default_delete<{0}>"]),
    (
        &["unordered_map", "unordered_multimap", "unordered_multiset", "unordered_set"],
        &["std::hash<{0}>", "std::equal_to<{0}>", "std::allocator<{0}>", PAIRS, OTHER_PAIRS],
    ),
];
const PAIRS: &str = "std::allocator<std::pair<const {0}, {1}>>";
const OTHER_PAIRS: &str = "std::allocator<std::pair<{0} const, {1}>>";
/// Names longer, or deeper, than that stay as they are.
const MAX_LEN: usize = 10_000;
const MAX_DEPTH: usize = 30;
/// Where libstdc++ and libc++ have their current versions of what is in `std`.
const VERSIONS: [&str; 2] = ["std::__cxx11::", "std::__1::"];
const ALIASES: [(&str, &str); 2] =
    [("std::basic_string<char>", "std::string"), ("std::basic_string_view<char>", "std::string_view")];

/// A type's name without what the library fills in; any other one as it is.
pub(crate) fn plain(name: &str) -> Cow<'_, str> {
    if !name.contains("std::") || name.len() > MAX_LEN {
        return Cow::Borrowed(name);
    }
    let name = VERSIONS.iter().fold(name.to_owned(), |name, version| name.replace(version, "std::"));
    let name = without_filled_in(&name, 0).unwrap_or(name);
    Cow::Owned(ALIASES.iter().fold(name, |name, (long, short)| name.replace(long, short)))
}

/// Nothing where the brackets don't match, as in the type of an `operator<`.
fn without_filled_in(mut rest: &str, depth: usize) -> Option<String> {
    let mut plain = String::new();
    while let Some(start) = rest.find('<').filter(|_| depth < MAX_DEPTH) {
        let template = &rest[..start];
        let (arguments, behind) = arguments(&rest[start + 1..])?;
        let own = |argument: &&str| without_filled_in(argument.trim(), depth + 1);
        let mut arguments: Vec<String> = arguments.iter().map(own).collect::<Option<_>>()?;
        let filled_in = filled_in(template);
        // The last ones, and never all.
        while arguments.len() > 1 && filled_in.iter().any(|known| is_filled_in(known, &arguments)) {
            arguments.pop();
        }
        plain.push_str(&format!("{template}<{}>", arguments.join(", ")));
        rest = behind;
    }
    plain.push_str(rest);
    (!rest.contains(['<', '>'])).then_some(plain)
}

/// What the library may have filled in behind the last name of this text.
fn filled_in(template: &str) -> &'static [&'static str] {
    let name = template.rsplit([' ', ',', '(', '<']).next().and_then(|name| name.strip_prefix("std::"));
    let known = FILLED_IN.iter().find(|(names, _)| name.is_some_and(|name| names.contains(&name)));
    known.map_or(&[], |(_, filled_in)| filled_in)
}

fn is_filled_in(known: &str, arguments: &[String]) -> bool {
    let [first, .., last] = arguments else { return false };
    // One compiler writes `> >` for `>>`, and `const` behind a pointer stands behind it for all.
    let known = known.replace("{0}", first).replace("{1}", &arguments[1]);
    let without_gaps = |text: &str| text.replace(' ', "");
    without_gaps(&known) == without_gaps(last)
}

/// What stands between the brackets, the first of which is passed already, and what follows them.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut all, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if depth == 0 => {
                all.push(&text[begin..at]);
                return Some((all, &text[at + 1..]));
            }
            '>' | ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                all.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_the_library_fills_in_is_left_out() {
        const TEXT: &str = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        let map = format!(
            "const std::map<{TEXT}, shop::Item, std::less<{TEXT} >, std::allocator<std::pair<{TEXT} const, \
             shop::Item> > > &"
        );
        for (long, short) in [
            (TEXT, "std::string"),
            (map.as_str(), "const std::map<std::string, shop::Item> &"),
            ("std::vector<int, std::allocator<int> >::iterator", "std::vector<int>::iterator"),
            (
                "std::unordered_set<int, std::hash<int>, std::equal_to<int>, std::allocator<int> >",
                "std::unordered_set<int>",
            ),
            ("std::unique_ptr<Item, std::default_delete<Item> > [2]", "std::unique_ptr<Item> [2]"),
            ("std::__1::vector<int, std::__1::allocator<int>>", "std::vector<int>"),
            ("void (*)(std::vector<int, std::allocator<int> > &, int)", "void (*)(std::vector<int> &, int)"),
        ] {
            assert_eq!(plain(long), short);
        }
    }

    #[test]
    fn what_somebody_chose_stays() {
        for name in [
            "int",
            "alloc::vec::Vec<alloc::string::String, alloc::alloc::Global>",
            "std::map<int, int, std::greater<int>>",
            "std::vector<int, shop::Pool<int>>",
            "std::allocator<int>",
            "shop::Sorted<int, std::less<int>>",
            "std::function<bool (int, std::less<int>)>",
            "std::pair<int, std::hash<int>>",
            "std::tuple<std::string, std::allocator<std::string>>",
            "std::map<std::string, int, std::less<void>>",
            "std::set<int, std::less<>>",
            "std::vector<int, std::allocator<long>>",
            "bool (std::string::*)(int) operator<",
            "std::vector<int",
            "std::pair>",
        ] {
            assert_eq!(plain(name), name);
        }
    }

    #[test]
    fn an_endless_name_stays() {
        for deep in [40, 4_000, 400_000] {
            let name = format!("{}int{}", "std::vector<".repeat(deep), ">".repeat(deep));
            assert_eq!(plain(&name), name);
        }
        let wide = format!("std::vector<int>{}", "<int>".repeat(1_900));
        assert_eq!(plain(&wide), wide);
    }
}

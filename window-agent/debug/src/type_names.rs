//! CORE: types of C++ as its programmers write them: `std::map<std::string, int>` is 300 characters long with all that
//! the library fills in.

use std::borrow::Cow;

/// What stands as an argument only where nobody chose another one.
const FILLED_IN: [&str; 6] = [
    "std::allocator<",
    "std::char_traits<",
    "std::default_delete<",
    "std::equal_to<",
    "std::hash<",
    "std::less<",
];
/// Where libstdc++ and libc++ have their current versions of what is in `std`.
const VERSIONS: [&str; 2] = ["std::__cxx11::", "std::__1::"];
const ALIASES: [(&str, &str); 2] =
    [("std::basic_string<char>", "std::string"), ("std::basic_string_view<char>", "std::string_view")];

/// A type's name without what the library fills in; any other one as it is.
pub(crate) fn plain(name: &str) -> Cow<'_, str> {
    if !name.contains("std::") {
        return Cow::Borrowed(name);
    }
    let name = VERSIONS.iter().fold(name.to_owned(), |name, version| name.replace(version, "std::"));
    let name = without_filled_in(&name).unwrap_or(name);
    Cow::Owned(ALIASES.iter().fold(name, |name, (long, short)| name.replace(long, short)))
}

/// Nothing where the brackets don't match, as in the type of an `operator<`.
fn without_filled_in(name: &str) -> Option<String> {
    let Some(start) = name.find('<') else { return (!name.contains('>')).then(|| name.to_owned()) };
    let (template, rest) = (&name[..start], &name[start + 1..]);
    let (arguments, rest) = arguments(rest)?;
    let mut plain: Vec<String> =
        arguments.iter().map(|argument| without_filled_in(argument.trim())).collect::<Option<_>>()?;
    let is_librarys =
        template.rsplit([' ', ',', '(', '<']).next().is_some_and(|name| name.starts_with("std::"));
    // The last ones, and never all.
    while is_librarys
        && plain.len() > 1
        && plain.last().is_some_and(|last| FILLED_IN.iter().any(|known| last.starts_with(known)))
    {
        plain.pop();
    }
    Some(format!("{template}<{}>{}", plain.join(", "), without_filled_in(rest)?))
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
            "bool (std::string::*)(int) operator<",
            "std::vector<int",
            "std::pair>",
        ] {
            assert_eq!(plain(name), name);
        }
    }
}

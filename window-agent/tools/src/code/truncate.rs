//! CORE: long texts without their middle, counted in tokens.

/// What is left of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// With a mark where something is missing.
    pub text: String,
    /// First and last line that are missing, counted from 0 in the text.
    pub skipped: Option<(usize, usize)>,
}

/// Tokens as models count them. A token has at least one byte, so that short texts need no counting, and the
/// dictionary is not even loaded for them.
pub fn count_tokens(text: &str) -> usize {
    tiktoken_rs::cl100k_base_singleton().encode_ordinary(text).len()
}

/// The text, or as much of its beginning and end as `max_tokens` allow.
pub fn truncate(text: &str, max_tokens: usize) -> Truncated {
    if text.len() <= max_tokens || count_tokens(text) <= max_tokens {
        return Truncated { text: text.to_owned(), skipped: None };
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let costs: Vec<usize> = lines.iter().map(|line| count_tokens(line) + 1).collect();
    // The mark costs some, too.
    let budget = max_tokens.saturating_sub(MARK_TOKENS);
    let n_head = n_fitting(costs.iter(), budget / 2);
    let head_cost: usize = costs[..n_head].iter().sum();
    let n_tail = n_fitting(costs[n_head..].iter().rev(), budget - head_cost);
    if n_head == 0 && n_tail == 0 {
        return cut_characters(text, lines.len(), max_tokens);
    }
    let (first, last) = (n_head, lines.len() - n_tail - 1);
    let mark = format!("... (skipping {} lines) ...", last + 1 - first);
    let parts = [&lines[..first], &[mark.as_str()], &lines[last + 1..]].concat();
    Truncated { text: parts.join("\n"), skipped: Some((first, last)) }
}

/// What the mark costs.
const MARK_TOKENS: usize = 12;

fn n_fitting<'a>(costs: impl Iterator<Item = &'a usize>, budget: usize) -> usize {
    let mut spent = 0;
    costs
        .take_while(|cost| {
            spent += **cost;
            spent <= budget
        })
        .count()
}

/// A line that is too long by itself, such as a table without line ends.
fn cut_characters(text: &str, n_lines: usize, max_tokens: usize) -> Truncated {
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let mut kept = text.len().min(max_tokens * 4) / 2;
    loop {
        let (head, tail) = (boundary(kept), boundary(text.len() - kept));
        let n_skipped = text[head..tail].chars().count();
        let shown =
            format!("{}\n... (skipping {n_skipped} characters) ...\n{}", &text[..head], &text[tail..]);
        if kept < 16 || count_tokens(&shown) <= max_tokens {
            return Truncated { text: shown, skipped: Some((0, n_lines - 1)) };
        }
        kept = kept * 3 / 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_goes() {
        let text: Vec<String> = (0..1_000).map(|idx| format!("value_{idx} = {idx}")).collect();
        let text = text.join("\n");
        assert_eq!(truncate(&text, 100_000), Truncated { text: text.clone(), skipped: None });
        let cut = truncate(&text, 200);
        assert!(count_tokens(&cut.text) <= 200);
        assert!(count_tokens(&cut.text) > 150, "as much as may be");
        let (first, last) = cut.skipped.unwrap();
        assert!(cut.text.starts_with("value_0 = 0\n") && cut.text.ends_with("\nvalue_999 = 999"));
        assert!(cut.text.contains(&format!("\n... (skipping {} lines) ...\n", last + 1 - first)));
        assert!(cut.text.contains(&format!("value_{} =", first - 1)));
        assert!(!cut.text.contains(&format!("value_{first} =")));
        assert!(cut.text.contains(&format!("value_{} =", last + 1)));
    }

    #[test]
    fn one_long_line_is_cut_inside() {
        let text = format!("x = [{}]", "'ä', ".repeat(20_000));
        let cut = truncate(&text, 300);
        assert!(count_tokens(&cut.text) <= 300, "{}", count_tokens(&cut.text));
        assert!(cut.text.starts_with("x = [") && cut.text.ends_with(']'));
        assert!(cut.text.contains("(skipping "));
    }
}

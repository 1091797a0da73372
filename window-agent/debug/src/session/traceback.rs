//! CORE: tracebacks of Python without the frames of the debugger, which stand before the program's own.

/// How one begins.
const BEGINNING: &str = "Traceback (most recent call last):";
/// How a frame begins in it; its source and marks are indented by more.
const FRAME: &str = "  File \"";
/// How the rest of a frame is indented.
const INDENT: &str = "    ";

/// Where in a traceback what was printed last ended. The interpreter writes a line in several pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traceback {
    part: Part,
    /// The line that was printed last has not ended.
    is_in_line: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// Nowhere in one, or behind the first frame of the program.
    #[default]
    Outside,
    /// No frame of the program has come yet.
    Beginning,
    /// In a frame of the debugger.
    Own,
}

impl Traceback {
    /// The text without those frames; `own` is what is in their first lines.
    pub(super) fn without_own(&mut self, text: String, own: &[String]) -> String {
        if own.is_empty() {
            return text;
        }
        if self.part == Part::Outside && !text.contains(BEGINNING) {
            self.is_in_line = !text.is_empty() && !text.ends_with('\n');
            return text;
        }
        text.split_inclusive('\n').filter(|piece| self.is_told(piece, own)).collect()
    }

    fn is_told(&mut self, piece: &str, own: &[String]) -> bool {
        let is_rest = std::mem::replace(&mut self.is_in_line, !piece.ends_with('\n'));
        let is_own = || piece.starts_with(FRAME) && own.iter().any(|sign| piece.contains(sign.as_str()));
        self.part = match self.part {
            _ if piece.starts_with(BEGINNING) => Part::Beginning,
            part if is_rest => part,
            Part::Beginning | Part::Own if is_own() => Part::Own,
            Part::Own if piece.starts_with(INDENT) => Part::Own,
            _ => Part::Outside,
        };
        self.part != Part::Own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "before
Traceback (most recent call last):
  File \"/usr/lib/python3.11/runpy.py\", line 198, in _run_module_as_main
    return _run_code(code, main_globals, None,
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File \"/x/debugpy/launcher/../__main__.py\", line 71, in <module>
    cli.main()
  File \"/w/shop.py\", line 16, in main
    raise ValueError(\"bad cart\")
  File \"/w/debugpy/own.py\", line 1, in f
    f()
ValueError: bad cart
";

    #[test]
    fn the_frames_before_the_programs_are_left_out() {
        let own = ["/debugpy/".to_owned(), "/runpy.py\"".to_owned()];
        let mut state = Traceback::default();
        let whole = state.without_own(TEXT.to_owned(), &own);
        let expected = "before
Traceback (most recent call last):
  File \"/w/shop.py\", line 16, in main
    raise ValueError(\"bad cart\")
  File \"/w/debugpy/own.py\", line 1, in f
    f()
ValueError: bad cart
";
        assert_eq!(whole, expected);
        let lines = TEXT.split_inclusive('\n').map(|line| state.without_own(line.to_owned(), &own));
        assert_eq!(lines.collect::<String>(), expected, "line by line it is the same");
        // As CPython 3.11 writes a source line: indentation, text, end.
        let pieces = TEXT.split_inclusive('\n').flat_map(|line| match line.strip_prefix(INDENT) {
            Some(source) => vec![INDENT, source.trim_end_matches('\n'), "\n"],
            None => vec![line],
        });
        let pieces = pieces.map(|piece| state.without_own(piece.to_owned(), &own));
        assert_eq!(pieces.collect::<String>(), expected, "nor does it matter where a line is cut");
        assert_eq!(state.without_own(TEXT.to_owned(), &[]), TEXT);
    }
}

//! CORE: tracebacks of Python without the frames of the debugger, which stand before the program's own.

/// How one begins.
const BEGINNING: &str = "Traceback (most recent call last):";
/// How a frame begins in it; its source and marks are indented by more.
const FRAME: &str = "  File \"";

/// Where in a traceback what was printed last ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Traceback {
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
        if own.is_empty() || (*self == Self::Outside && !text.contains(BEGINNING)) {
            return text;
        }
        text.split_inclusive('\n').filter(|line| self.is_told(line, own)).collect()
    }

    fn is_told(&mut self, line: &str, own: &[String]) -> bool {
        let is_own = || line.starts_with(FRAME) && own.iter().any(|sign| line.contains(sign.as_str()));
        *self = match *self {
            _ if line.starts_with(BEGINNING) => Self::Beginning,
            Self::Beginning | Self::Own if is_own() => Self::Own,
            Self::Own if line.starts_with("    ") => Self::Own,
            _ => Self::Outside,
        };
        *self != Self::Own
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
        assert_eq!(state.without_own(TEXT.to_owned(), &[]), TEXT);
    }
}

//! CORE: a text by lines, position encodings, what changed between two texts, and what bytes are text at all.

use sha2::{Digest as _, Sha256};

use super::lsp::{Position, Range};

/// Bytes at the start of a file in which a NUL means that it is no text.
const PROBE_LEN: usize = 8 * 1024;

/// In what a server counts `character`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Code units of UTF-16, the protocol's default.
    #[default]
    Utf16,
    /// Code points.
    Utf32,
}

impl Encoding {
    /// From its name in the protocol.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "utf-8" => Some(Encoding::Utf8),
            "utf-16" => Some(Encoding::Utf16),
            "utf-32" => Some(Encoding::Utf32),
            _ => None,
        }
    }

    fn len_of(self, char: char) -> usize {
        match self {
            Encoding::Utf8 => char.len_utf8(),
            Encoding::Utf16 => char.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }
}

/// A text with the places of its lines. A line ends with LF, CR LF or CR, as the protocol says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    text: String,
    starts: Vec<usize>,
}

impl Text {
    /// Finds the lines.
    pub fn new(text: String) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            if bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n') {
                starts.push(at + 1);
            }
        }
        Self { text, starts }
    }

    /// All of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How many lines; what follows the last line end counts when it is not empty.
    pub fn n_lines(&self) -> usize {
        let last_is_empty = self.starts.last() == Some(&self.text.len());
        self.starts.len() - usize::from(last_is_empty)
    }

    /// A line, counted from 0, without its end; empty behind the last.
    pub fn line(&self, idx: usize) -> &str {
        let Some(&start) = self.starts.get(idx) else { return "" };
        let end = self.starts.get(idx + 1).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }

    /// Lines, counted from 0, both ends included, with their ends but the last.
    pub fn lines(&self, first: usize, last: usize) -> &str {
        let last = last.min(self.starts.len().saturating_sub(1));
        if first > last {
            return "";
        }
        let end = self.starts.get(last + 1).copied().unwrap_or(self.text.len());
        self.text[self.starts[first]..end].trim_end_matches(['\n', '\r'])
    }

    /// Whether something can stand at a position: its line is there. Every text has a start.
    pub fn has(&self, position: Position) -> bool {
        (position.line as usize) < self.n_lines().max(1)
    }

    /// The byte at a position; a position behind the end of its line is that end.
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let line = self.line(position.line as usize);
        let mut wanted = position.character as usize;
        for (at, char) in line.char_indices() {
            let len = encoding.len_of(char);
            if wanted < len {
                return start + at;
            }
            wanted -= len;
        }
        start + line.len()
    }

    /// The position of a byte.
    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let before = self.text.get(self.starts[line]..offset).unwrap_or_default();
        let character: usize = before.chars().map(|char| encoding.len_of(char)).sum();
        Position { line: to_u32(line), character: to_u32(character) }
    }

    /// A position counted in code points, whatever the server counts in.
    pub fn to_chars(&self, position: Position, encoding: Encoding) -> Position {
        if encoding == Encoding::Utf32 {
            return position;
        }
        let line = self.line(position.line as usize);
        if line.is_ascii() {
            return position;
        }
        let offset = self.offset(position, encoding) - self.starts[position.line as usize];
        Position { line: position.line, character: to_u32(line[..offset].chars().count()) }
    }

    /// The one stretch that differs between two texts, as a change for a server that has `self`.
    pub fn change_to(&self, new: &str, encoding: Encoding) -> Option<(Range, String)> {
        let old = self.text.as_str();
        if old == new {
            return None;
        }
        let shorter = old.len().min(new.len());
        let mut prefix = common(old.bytes(), new.bytes(), shorter);
        while !is_cut(old, prefix) || !is_cut(new, prefix) {
            prefix -= 1;
        }
        let mut suffix = common(old.bytes().rev(), new.bytes().rev(), shorter - prefix);
        while !is_cut(old, old.len() - suffix) || !is_cut(new, new.len() - suffix) {
            suffix -= 1;
        }
        let range = Range {
            start: self.position(prefix, encoding),
            end: self.position(old.len() - suffix, encoding),
        };
        Some((range, new[prefix..new.len() - suffix].to_owned()))
    }
}

fn common(left: impl Iterator<Item = u8>, right: impl Iterator<Item = u8>, limit: usize) -> usize {
    left.zip(right).take(limit).take_while(|(left, right)| left == right).count()
}

/// Whether a text may be cut there: not inside a character, nor inside a line end.
fn is_cut(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let is_in_line_end = at > 0 && bytes[at - 1] == b'\r' && bytes.get(at) == Some(&b'\n');
    text.is_char_boundary(at) && !is_in_line_end
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// How a text is stored, so that it can be written back the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// UTF-8.
    #[default]
    Plain,
    /// UTF-8 with a byte order mark.
    Marked,
    /// UTF-16 with a mark; `true` is big endian.
    Wide(bool),
}

/// Why bytes are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// A NUL among the first bytes.
    #[error("is a binary file")]
    Binary,
    /// Some other encoding.
    #[error("is neither UTF-8 nor UTF-16 with a byte order mark")]
    Encoding,
}

/// Understands the bytes of a file.
pub fn decode(bytes: Vec<u8>) -> Result<(String, Storage), NotText> {
    let wide = match bytes.get(..2) {
        Some([0xff, 0xfe]) => Some(false),
        Some([0xfe, 0xff]) => Some(true),
        _ => None,
    };
    if let Some(is_big) = wide {
        if bytes.len() % 2 == 1 {
            // Half a unit would be lost when the text is written back.
            return Err(NotText::Encoding);
        }
        let units = bytes[2..].chunks_exact(2).map(|pair| {
            let pair = [pair[0], pair[1]];
            if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        return text.map(|text| (text, Storage::Wide(is_big))).map_err(|_| NotText::Encoding);
    }
    if memchr::memchr(0, &bytes[..bytes.len().min(PROBE_LEN)]).is_some() {
        return Err(NotText::Binary);
    }
    let text = String::from_utf8(bytes).map_err(|_| NotText::Encoding)?;
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok((rest.to_owned(), Storage::Marked)),
        None => Ok((text, Storage::Plain)),
    }
}

/// The bytes to write for a text.
pub fn encode(text: &str, storage: Storage) -> Vec<u8> {
    match storage {
        Storage::Plain => text.as_bytes().to_vec(),
        Storage::Marked => ["\u{feff}", text].concat().into_bytes(),
        Storage::Wide(is_big) => "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect(),
    }
}

/// Whether a character belongs to a name.
pub fn is_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$')
}

/// Stands for a text: of two different ones it is different.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    #[test]
    fn lines_end_in_three_ways() {
        let text = Text::new("a\nb\r\nc\rd".to_owned());
        assert_eq!((0..5).map(|idx| text.line(idx)).collect::<Vec<_>>(), ["a", "b", "c", "d", ""]);
        assert_eq!(text.n_lines(), 4);
        assert_eq!(text.lines(1, 2), "b\r\nc");
        assert_eq!(text.lines(2, 99), "c\rd");
        assert_eq!(Text::new(String::new()).n_lines(), 0);
        assert_eq!(Text::new("a\n".to_owned()).n_lines(), 1);
    }

    #[test]
    fn positions_are_counted_as_the_server_does() {
        let text = Text::new("x\nä😀z\n".to_owned());
        let z = text.as_str().find('z').unwrap();
        let characters = ENCODINGS.map(|encoding| text.position(z, encoding).character);
        assert_eq!(characters, [6, 3, 2]);
        for (encoding, character) in ENCODINGS.into_iter().zip(characters) {
            let position = Position { line: 1, character };
            assert_eq!(text.offset(position, encoding), z);
            assert_eq!(text.to_chars(position, encoding).character, 2);
        }
        assert_eq!(text.offset(Position { line: 1, character: 99 }, Encoding::Utf16), z + 1);
        assert_eq!(text.offset(Position { line: 9, character: 0 }, Encoding::Utf16), text.as_str().len());
    }

    #[test]
    fn bytes_are_told_from_text() {
        assert_eq!(decode(b"\x7fELF\0".to_vec()), Err(NotText::Binary));
        assert_eq!(decode(vec![0xe4, b'a']), Err(NotText::Encoding));
        assert_eq!(decode(vec![0xff, 0xfe, b'a', 0, b'b']), Err(NotText::Encoding));
        for storage in [Storage::Plain, Storage::Marked, Storage::Wide(true), Storage::Wide(false)] {
            assert_eq!(decode(encode("ä😀\r\n", storage)), Ok(("ä😀\r\n".to_owned(), storage)));
        }
    }

    proptest! {
        #[test]
        fn a_change_leads_from_the_old_text_to_the_new(
            old in "[ab\r\nä😀]{0,20}", new in "[ab\r\nä😀]{0,20}", encoding in 0usize..3
        ) {
            let encoding = ENCODINGS[encoding];
            let text = Text::new(old.clone());
            let changed = match text.change_to(&new, encoding) {
                None => old.clone(),
                Some((range, inserted)) => {
                    let (start, end) = (text.offset(range.start, encoding), text.offset(range.end, encoding));
                    format!("{}{inserted}{}", &old[..start], &old[end..])
                }
            };
            prop_assert_eq!(changed, new);
        }
    }
}

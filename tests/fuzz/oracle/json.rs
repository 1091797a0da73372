//! A plain reader of JSON, made from RFC 8259 alone: what Baton's own readers are compared with.

/// A value as it was written: nothing is merged, rounded or sorted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    /// None for one with half a surrogate pair, which is no text.
    Text(Option<String>),
    List(Vec<Json>),
    Object(Vec<(Option<String>, Json)>),
}

impl Json {
    /// The members of an object that have this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&Json> {
        let Json::Object(members) = self else { return Vec::new() };
        members.iter().filter(|(key, _)| key.as_deref() == Some(name)).map(|(_, value)| value).collect()
    }

    /// Levels of lists and objects.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Json::List(items) => 1 + items.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether all texts are texts, and no name comes twice in one object.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Json::Text(text) => text.is_some(),
            Json::List(items) => items.iter().all(Json::is_plain),
            Json::Object(members) => members.iter().enumerate().all(|(idx, (key, value))| {
                key.is_some() && value.is_plain() && members[..idx].iter().all(|(other, _)| other != key)
            }),
            _ => true,
        }
    }

    /// Whether serde_json holds the same. Numbers are compared as serde_json reads them.
    pub(crate) fn is_same(&self, value: &serde_json::Value) -> bool {
        use serde_json::Value;
        match (self, value) {
            (Json::Null, Value::Null) => true,
            (Json::Bool(left), Value::Bool(right)) => left == right,
            (Json::Number(text), Value::Number(_)) => {
                serde_json::from_str::<Value>(text).is_ok_and(|number| number == *value)
            }
            (Json::Text(left), Value::String(right)) => left.as_ref() == Some(right),
            (Json::List(left), Value::Array(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.is_same(right))
            }
            (Json::Object(left), Value::Object(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(key, value)| {
                        let other = key.as_ref().and_then(|key| right.get(key));
                        other.is_some_and(|other| value.is_same(other))
                    })
            }
            _ => false,
        }
    }
}

/// Reads a whole text; `is_relaxed` allows comments and a comma behind the last item.
pub(crate) fn read(text: &str, is_relaxed: bool) -> Option<Json> {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader { chars: &chars, at: 0, is_relaxed };
    let value = reader.value()?;
    (reader.at == chars.len()).then_some(value)
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    is_relaxed: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn word(&mut self, word: &str) -> bool {
        word.chars().all(|char| self.take(char))
    }

    /// White space and comments; None for a comment that is not closed.
    fn space(&mut self) -> Option<()> {
        loop {
            while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
                self.at += 1;
            }
            if !self.is_relaxed || self.peek() != Some('/') {
                return Some(());
            }
            self.at += 1;
            if self.take('/') {
                // A lone return ends it as well, as it does for VS Code.
                while self.peek().is_some_and(|char| !matches!(char, '\n' | '\r')) {
                    self.at += 1;
                }
            } else if self.take('*') {
                while !(self.peek()? == '*' && self.chars.get(self.at + 1) == Some(&'/')) {
                    self.at += 1;
                }
                self.at += 2;
            } else {
                return None;
            }
        }
    }

    fn value(&mut self) -> Option<Json> {
        self.space()?;
        let value = match self.peek()? {
            'n' => self.word("null").then_some(Json::Null),
            't' => self.word("true").then_some(Json::Bool(true)),
            'f' => self.word("false").then_some(Json::Bool(false)),
            '"' => self.text().map(Json::Text),
            '[' => self.list(),
            '{' => self.object(),
            _ => self.number(),
        }?;
        self.space()?;
        Some(value)
    }

    fn list(&mut self) -> Option<Json> {
        let mut items = Vec::new();
        self.take('[');
        self.space()?;
        while !self.take(']') {
            items.push(self.value()?);
            self.end_of_item(']')?;
        }
        Some(Json::List(items))
    }

    fn object(&mut self) -> Option<Json> {
        let mut members = Vec::new();
        self.take('{');
        self.space()?;
        while !self.take('}') {
            let key = (self.peek()? == '"').then(|| self.text())??;
            self.space()?;
            if !self.take(':') {
                return None;
            }
            members.push((key, self.value()?));
            self.end_of_item('}')?;
        }
        Some(Json::Object(members))
    }

    /// Behind an item: a comma and another item, or the end.
    fn end_of_item(&mut self, end: char) -> Option<()> {
        if self.peek()? == end {
            return Some(());
        }
        let is_comma = self.take(',');
        self.space()?;
        let is_last = self.peek()? == end;
        (is_comma && (!is_last || self.is_relaxed)).then_some(())
    }

    fn number(&mut self) -> Option<Json> {
        let start = self.at;
        self.take('-');
        let whole = self.digits();
        if whole == 0 || (whole > 1 && self.chars[self.at - whole] == '0') {
            return None;
        }
        if self.take('.') && self.digits() == 0 {
            return None;
        }
        if self.take('e') || self.take('E') {
            let _is_signed = self.take('+') || self.take('-');
            if self.digits() == 0 {
                return None;
            }
        }
        Some(Json::Number(self.chars[start..self.at].iter().collect()))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|char| char.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn text(&mut self) -> Option<Option<String>> {
        let mut units: Vec<u16> = Vec::new();
        self.take('"');
        loop {
            let char = self.peek()?;
            self.at += 1;
            match char {
                '"' => return Some(String::from_utf16(&units).ok()),
                '\\' => units.push(self.escaped()?),
                '\0'..='\u{1f}' => return None,
                char => units.extend(char.encode_utf16(&mut [0; 2]).iter()),
            }
        }
    }

    fn escaped(&mut self) -> Option<u16> {
        let char = self.peek()?;
        self.at += 1;
        let unit = match char {
            '"' | '\\' | '/' => char as u16,
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'u' => {
                let digits: Option<u32> = (0..4).try_fold(0, |sum, _| {
                    let digit = self.peek()?.to_digit(16)?;
                    self.at += 1;
                    Some(sum * 16 + digit)
                });
                u16::try_from(digits?).ok()?
            }
            _ => return None,
        };
        Some(unit)
    }
}

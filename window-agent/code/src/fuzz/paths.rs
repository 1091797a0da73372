//! Paths and addresses of files: what is understood is one file, and its address leads back to it.

use std::path::Component;

use crate::lsp;
use baton_agent_base::paths::{Given, Remote, parse};

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let given = parse(text, Remote::Own);
    if let Ok(Given::Absolute(path) | Given::Relative(path)) = &given {
        assert!(!path.to_string_lossy().contains('\0'), "no system takes {path:?}");
    }
    if let Ok(Given::Absolute(path)) = &given {
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        assert!(path.is_absolute() && is_plain, "{path:?} names one place");
        assert_eq!(lsp::path(&lsp::uri(path)).as_ref(), Some(path), "its address leads back");
    }
    if let Some(rest) = text.trim().strip_prefix("file://")
        && text.len() <= 4_096
        && !text.contains('\0')
    {
        let expected = decoded(rest);
        let found = match &given {
            Ok(Given::Absolute(path)) => Some(path.clone()),
            _ => None,
        };
        assert_eq!(found.is_some(), expected.is_some(), "{text:?}");
        // Without dots and doubled slashes there is nothing to tidy.
        if let Some(expected) = expected.filter(|path| !path.contains('.') && !path.contains("//")) {
            let expected = if expected.len() > 1 { expected.trim_end_matches('/') } else { &expected };
            assert_eq!(found.as_deref().and_then(|path| path.to_str()), Some(expected));
        }
    }
}

/// The path behind the authority of an address of this machine, character by character.
fn decoded(rest: &str) -> Option<String> {
    let (host, path) = rest.split_at(rest.find('/')?);
    if !["", "localhost"].contains(&host.to_ascii_lowercase().as_str()) {
        return None;
    }
    let path: Vec<char> = path.chars().take_while(|char| !matches!(char, '?' | '#')).collect();
    let (mut bytes, mut at) = (Vec::new(), 0);
    while let Some(char) = path.get(at) {
        at += 1;
        if *char != '%' {
            bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let digit = |at: usize| path.get(at).and_then(|char| char.to_digit(16));
        bytes.push(u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()?);
        at += 2;
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

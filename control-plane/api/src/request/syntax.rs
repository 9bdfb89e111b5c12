//! What is wrong with a JSON text, in the words that clients of Kubernetes know.
//!
//! The parser of this server says it in its own words; people, tests and tools have seen the others for years.

/// Nesting deeper than this is refused unread.
pub const MAX_DEPTH: usize = 100;

/// The first thing that is wrong with a text that is no JSON. A text that is well-formed gives `None`.
pub fn problem(text: &[u8]) -> Option<String> {
    let mut scan = Scan { text, at: 0 };
    scan.document().err()
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

type Step = Result<(), String>;

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn fail(&self, context: &str) -> Step {
        match self.peek() {
            None => Err("unexpected end of JSON input".to_owned()),
            Some(byte) => Err(format!("invalid character {} {context}", quote_byte(byte))),
        }
    }

    fn document(&mut self) -> Step {
        self.value(0)?;
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("after top-level value"),
        }
    }

    fn value(&mut self, depth: usize) -> Step {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail("looking for beginning of value"),
        }
    }

    fn object(&mut self, depth: usize) -> Step {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.fail("looking for beginning of object key string");
            }
            self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.fail("after object key");
            }
            self.at += 1;
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fail("after object key:value pair"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Step {
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fail("after array element"),
            }
        }
    }

    fn string(&mut self) -> Step {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.at += 1;
                        }
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return self.fail("in \\u hexadecimal character escape");
                                }
                                self.at += 1;
                            }
                        }
                        _ => return self.fail("in string escape code"),
                    }
                }
                Some(0..0x20) | None => return self.fail("in string literal"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn literal(&mut self, word: &str) -> Step {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return self.fail(&format!(
                    "in literal {word} (expecting {})",
                    quote_byte(expected)
                ));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Step {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.fail(context);
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Step {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
}

fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => {
            let quoted = quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// A text in double quotes with escapes as `%q` prints them.
pub fn quote(text: &str) -> String {
    use std::fmt::Write as _;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            letter if (letter as u32) < 0x20 || letter as u32 == 0x7f => {
                let _ = write!(quoted, "\\x{:02x}", letter as u32);
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn problems() {
        for (text, want) in [
            (
                "{not json",
                "invalid character 'n' looking for beginning of object key string",
            ),
            ("", "unexpected end of JSON input"),
            (
                "not",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\":1 \"b\"}",
                "invalid character '\"' after object key:value pair",
            ),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{\"a\":", "unexpected end of JSON input"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
        ] {
            assert_eq!(problem(text.as_bytes()).as_deref(), Some(want), "{text}");
        }
    }

    proptest! {
        /// This scanner and the parser agree on what is JSON.
        #[test]
        fn agrees_with_the_parser(text in "[\\[\\]{}:,\" \\\\a-fnlutr0-9.eE+-]{0,24}") {
            let parsed = serde_json::from_str::<serde_json::Value>(&text);
            let out_of_range = parsed.as_ref().is_err_and(|error| error.to_string().contains("out of range"))
                || parsed.as_ref().is_err_and(|error| error.to_string().contains("surrogate"));
            prop_assert!(out_of_range || problem(text.as_bytes()).is_none() == parsed.is_ok(), "{}", text);
        }
    }
}

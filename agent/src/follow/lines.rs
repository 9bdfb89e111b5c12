//! Bytes into lines.

/// Collects bytes and gives out whole lines.
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here there is no line end after `start`.
    searched: usize,
    largest: usize,
}

impl Lines {
    pub fn new(largest: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            largest,
        }
    }

    /// Fails when what is left without a line end is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.len() + bytes.len() > self.largest {
            return Err(format!("a line of more than {} bytes", self.largest));
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.capacity() > 64 * 1024 && self.buffer.len() < 16 * 1024 {
            self.buffer.shrink_to(16 * 1024);
        }
        Ok(())
    }

    /// The next whole line that is not empty.
    pub fn next(&mut self) -> Option<&[u8]> {
        loop {
            let found = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n');
            let Some(length) = found else {
                self.searched = self.buffer.len();
                return None;
            };
            let (start, end) = (self.start, self.searched + length);
            self.start = end + 1;
            self.searched = self.start;
            if !self.buffer[start..end].trim_ascii().is_empty() {
                return Some(&self.buffer[start..end]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the bytes arrive, the lines are the same.
        #[test]
        fn chunks_do_not_matter(text in "[ab\n]{0,60}", cuts in prop::collection::vec(1_usize..9, 0..60)) {
            let mut lines = Lines::new(1024);
            let mut found = Vec::new();
            let mut rest = text.as_bytes();
            let mut cuts = cuts.into_iter();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts.next().unwrap_or(5).min(rest.len()));
                lines.push(now).unwrap();
                while let Some(line) = lines.next() {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                }
                rest = later;
            }
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let expected: Vec<_> = whole.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut lines = Lines::new(8);
        lines.push(b"12345678").unwrap();
        assert!(lines.push(b"9").is_err());
    }
}

//! Entries of a batch under way, for engines whose transaction cannot stay open between two calls
//! without borrowing from itself.

/// Keys and values behind each other in one buffer that is kept between batches.
#[derive(Default)]
pub struct Gathered {
    bytes: Vec<u8>,
    lengths: Vec<(u32, u32)>,
}

impl Gathered {
    /// Adds an entry.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len() as u32, value.len() as u32));
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }
    /// The entries, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().map(move |&(key, value)| {
            let (entry, after) = rest.split_at((key + value) as usize);
            rest = after;
            entry.split_at(key as usize)
        })
    }
    /// Forgets them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn entries_come_out_as_they_went_in() {
        let mut gathered = super::Gathered::default();
        gathered.push(b"k", b"");
        gathered.push(b"", b"value");
        let entries: Vec<_> = gathered.iter().collect();
        assert_eq!(entries, [(&b"k"[..], &b""[..]), (&b""[..], &b"value"[..])]);
        gathered.clear();
        assert!(gathered.is_empty());
    }
}

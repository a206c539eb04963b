//! Reading Helm's output, where most documents have been read before: the CRDs of a release are the same in every render.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use yaml::Duplicates;

/// Most bytes of text that are remembered.
const LIMIT: usize = 16 << 20;

/// A reader of YAML streams that remembers the documents it has read, by their text.
#[derive(Debug, Default)]
pub struct Documents {
    known: BTreeMap<String, Arc<[Arc<Value>]>>,
    bytes: usize,
}

impl Documents {
    /// The documents of a stream without the empty ones, the last of equal keys winning.
    pub fn parse(&mut self, stream: &str) -> Result<Vec<Arc<Value>>> {
        let mut all = Vec::new();
        for text in yaml::parts(stream) {
            if let Some(known) = self.known.get(text) {
                all.extend(known.iter().cloned());
                continue;
            }
            let read = yaml::parse_all_with(text, Duplicates::LastWins)?;
            let read: Arc<[Arc<Value>]> = read.into_iter().map(Arc::new).collect();
            all.extend(read.iter().cloned());
            if self.bytes + text.len() > LIMIT {
                self.known.clear();
                self.bytes = 0;
            }
            self.bytes += text.len();
            self.known.insert(text.to_owned(), read);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_as_without_memory() {
        let stream = "---\na: 1\n---\n# nothing\n---\nb: |\n  x\n  ---\n--- \n- c\n---\na: 1\n";
        let mut documents = Documents::default();
        let expect = yaml::parse_all(stream).unwrap();
        for _ in 0..2 {
            let read = documents.parse(stream).unwrap();
            let read: Vec<Value> = read.iter().map(|value| (**value).clone()).collect();
            assert_eq!(read, expect);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut documents = Documents::default();
        for n in 0..5 {
            let text = format!("a: {n}\nb: {}\n", "x".repeat(LIMIT / 4));
            documents.parse(&text).unwrap();
            assert!(documents.bytes <= LIMIT);
        }
    }
}

//! Seeded changes to kept inputs: no coverage, but the same run each time and on any toolchain.

/// Draws inputs from a corpus. Equal seeds give equal inputs.
#[derive(Debug, Clone)]
pub struct Mutator {
    state: u64,
}

/// Pieces that mean something to one of the readers.
const PIECES: [&str; 28] = [
    "\0",
    "\n",
    "\n\n",
    "=",
    ":",
    ": ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\\u0000",
    "\u{2028}",
    "/",
    "null",
    "true",
    "-1",
    "1e999",
    "9007199254740993",
    "&a ",
    "*a",
    "!!binary ",
    "<<: ",
    "|\n",
    "secret:",
    "\u{1f980}",
];

impl Mutator {
    /// A mutator from a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number below `n`; 0 for 0. `SplitMix64`.
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = z ^ (z >> 31);
        usize::try_from(z % (n.max(1) as u64)).unwrap_or_default()
    }

    /// One of the corpus with a few changes: bytes flipped, parts cut, doubled, swapped for parts
    /// of another, pieces put in.
    pub fn next(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut data = corpus
            .get(self.below(corpus.len()))
            .cloned()
            .unwrap_or_default();
        for _ in 0..=self.below(6) {
            let at = self.below(data.len() + 1);
            let end = (at + self.below(16)).min(data.len());
            match self.below(6) {
                0 if at < data.len() => data[at] ^= 1 << self.below(8),
                1 => drop(data.drain(at..end)),
                2 => {
                    let part = data[at..end].to_vec();
                    data.splice(at..at, part);
                }
                3 => {
                    let other = corpus.get(self.below(corpus.len()));
                    let other = other.map_or(&[][..], Vec::as_slice);
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(64)).min(other.len());
                    data.splice(at..end, other[from..to].iter().copied());
                }
                4 => data.truncate(at),
                _ => {
                    let piece = PIECES[self.below(PIECES.len())];
                    data.splice(at..at, piece.bytes());
                }
            }
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_inputs() {
        let corpus = [b"name: meshy\n".to_vec(), b"{}".to_vec()];
        let draw = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..50).map(|_| mutator.next(&corpus)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}

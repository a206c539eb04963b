//! What fits on a command line.

/// The longest text one process argument can hold: Linux allows 131,072 bytes including the
/// terminating NUL (`MAX_ARG_STRLEN`).
pub const MAX_ARGUMENT_BYTES: usize = 131_071;

/// All arguments of one call together stay under this; the kernel's own limit is a quarter of the
/// stack limit, 2 MiB by default, and also holds the environment.
pub(crate) const MAX_ARGUMENTS_TOTAL_BYTES: usize = 1 << 20;

/// Cuts a message into pieces of at most `limit` bytes, never inside a character. The pieces
/// joined give the message back; an empty message gives no piece. A `limit` below 4 bytes counts
/// as 4, so that every character fits.
pub fn split_message(message: &str, limit: usize) -> Vec<&str> {
    let limit = limit.max(4);
    let mut pieces = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(limit));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        let check = |message: &str, limit: usize, expect: &[&str]| {
            assert_eq!(
                split_message(message, limit),
                expect,
                "{message:?} at {limit}"
            );
        };
        check("", 10, &[]);
        check("abcdef", 4, &["abcd", "ef"]);
        check("abcd", 4, &["abcd"]);
        check("ééé", 5, &["éé", "é"]);
        check("🦀🦀", 1, &["🦀", "🦀"]);
        let long = "é".repeat(MAX_ARGUMENT_BYTES);
        let pieces = split_message(&long, MAX_ARGUMENT_BYTES);
        let sizes: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(sizes, [131_070, 131_070, 2]);
    }

    proptest! {
        #[test]
        fn pieces_fit_and_join_to_the_message(message in any::<String>(), limit in 0usize..40) {
            let pieces = split_message(&message, limit);
            prop_assert_eq!(pieces.concat(), message.clone());
            prop_assert!(pieces.iter().all(|piece| (1..=limit.max(4)).contains(&piece.len())));
        }
    }
}

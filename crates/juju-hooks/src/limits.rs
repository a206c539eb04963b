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

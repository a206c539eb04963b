//! A value that never prints itself.

use std::fmt;

/// Holds a secret: `Debug` and `Display` print `[redacted]`, and there is no `Serialize`, so that
/// neither logs nor snapshots nor reports can carry it by accident.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// Hides `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself; the call site says that it handles a secret.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// The value itself, taken out.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Hides the result of `f` as well.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Redacted<U> {
        Redacted(f(self.0))
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<T> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<T> From<T> for Redacted<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redacted_value_never_prints() {
        let secret = Redacted::new("hunter2".to_owned());
        assert_eq!(format!("{secret} {secret:?} {:#?}", Some(&secret)), {
            "[redacted] [redacted] Some(\n    [redacted],\n)"
        });
        assert_eq!(secret.expose(), "hunter2");
    }
}

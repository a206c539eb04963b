//! Waits for what a cluster does in its own time.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks until `look` gives a value, at most `limit`. An error of a look is no end: the last one is
/// told when time runs out.
///
/// # Errors
/// Nothing was seen in time; the error tells what was looked for and what was seen last.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        let seen = look();
        if let Ok(Some(value)) = seen {
            return Ok(value);
        }
        if start.elapsed() > limit {
            match seen {
                Err(error) => return Err(error.context(format!("no {what} in {limit:?}"))),
                Ok(_) => bail!("no {what} in {limit:?}"),
            }
        }
        thread::sleep(PAUSE);
    }
}

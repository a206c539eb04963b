//! Work on many items with both cores of the machine.

use std::sync::Mutex;

use anyhow::Result;

/// Does the work on each item with two threads, and gives the results in the order of the items.
pub fn in_pairs<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let queue = Mutex::new(items.iter().enumerate());
    let worker = || -> Result<Vec<(usize, R)>> {
        let mut done = Vec::new();
        loop {
            let next = queue.lock().map_or(None, |mut queue| queue.next());
            let Some((number, item)) = next else {
                return Ok(done);
            };
            done.push((number, work(item)?));
        }
    };
    let mut done = std::thread::scope(|scope| -> Result<Vec<_>> {
        let other = scope.spawn(worker);
        let mut done = worker()?;
        match other.join() {
            Ok(theirs) => done.extend(theirs?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(done)
    })?;
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..50).collect();
        let squares = in_pairs(&items, |n| Ok(n * n)).unwrap();
        assert_eq!(squares, items.iter().map(|n| n * n).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_is_the_answer() {
        let result = in_pairs(&[1, 2, 3], |n| {
            anyhow::ensure!(*n != 2, "two");
            Ok(())
        });
        assert_eq!(result.unwrap_err().to_string(), "two");
    }
}

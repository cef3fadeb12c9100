//! Independent runs on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `f` to every item on all processors; the results are in the order of the items.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((item, result)) = {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    items.get(i).zip(results.get(i))
                } {
                    *result.lock().expect("no worker panics") = Some(f(item));
                }
            });
        }
    });
    let done = |r: Mutex<Option<R>>| r.into_inner().expect("no worker panics");
    results.into_iter().map(|r| done(r).expect("every item was mapped")).collect()
}

//! Counts the program's requests that polypath does not support.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static MISSED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// The lock, which a thread of the program may hold at the moment of a fork.
pub(crate) fn freeze() -> MutexGuard<'static, BTreeMap<String, u64>> {
    MISSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a request.
pub(crate) fn missed(request: impl Into<String>) {
    let mut missed = MISSED.lock().unwrap_or_else(PoisonError::into_inner);
    *missed.entry(request.into()).or_default() += 1;
}

/// The requests with their numbers, one line each.
pub(crate) fn text() -> String {
    let missed = MISSED.lock().unwrap_or_else(PoisonError::into_inner);
    if missed.is_empty() {
        return "polypath run: every request of the program is supported\n".to_owned();
    }
    missed
        .iter()
        .map(|(what, n)| format!("polypath run: not supported: {what} ({n} times)\n"))
        .collect()
}

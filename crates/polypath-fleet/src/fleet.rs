//! Runs many cases on all processors.

mod seen;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polypath_sim::random::derive;

pub use seen::Seen;

use crate::case;
use crate::judge::{self, Failure};

/// The cases to run.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// Selects the cases: the number of the n-th case is derived from `first + n`.
    pub first: u64,
    /// Number of cases.
    pub cases: u64,
    /// Whether to run only cases of the ns-2 profiles.
    pub ns2: bool,
    /// Number of threads.
    pub workers: usize,
}

/// A case that failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Number of the case.
    pub number: u64,
    /// The failure.
    pub failure: Failure,
}

/// Progress of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Number of cases that have run.
    pub cases: u64,
    /// Number of these that failed.
    pub failures: u64,
    /// Time since the beginning.
    pub elapsed: Duration,
}

/// Results of a fleet.
#[derive(Debug)]
pub struct Summary {
    /// Failed cases, in the order of their numbers.
    pub failed: Vec<Failed>,
    /// Numbers of cases in which events happened.
    pub seen: Seen,
    /// Time that the fleet took.
    pub elapsed: Duration,
}

impl Fleet {
    /// A fleet with as many threads as there are processors.
    pub fn new(first: u64, cases: u64) -> Self {
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        Self { first, cases, ns2: false, workers }
    }

    /// The number of the n-th case.
    pub fn number(&self, n: u64) -> u64 {
        let number = derive(self.first.wrapping_add(n), "case");
        if self.ns2 { case::with_ns2_profile(number) } else { number }
    }

    /// Runs all cases. One of the threads calls `failed` for each failure as soon as it is found,
    /// and `progress` about every ten seconds.
    pub fn run(
        &self,
        failed: &(dyn Fn(&Failed) + Sync),
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Summary {
        let began = Instant::now();
        let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let failures = Mutex::new(Vec::new());
        let told = Mutex::new(began);
        let work = || {
            let mut seen = Seen::default();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= self.cases {
                    return seen;
                }
                let number = self.number(n);
                match judge::run(&case::scenario(number)) {
                    Ok(outcome) => seen.add(&outcome),
                    Err(failure) => {
                        let one = Failed { number, failure };
                        failed(&one);
                        lock(&failures).push(one);
                    }
                }
                let cases = done.fetch_add(1, Ordering::Relaxed) + 1;
                if let Ok(mut last) = told.try_lock()
                    && last.elapsed() >= Duration::from_secs(10)
                {
                    *last = Instant::now();
                    let failures = lock(&failures).len() as u64;
                    progress(Progress { cases, failures, elapsed: began.elapsed() });
                }
            }
        };
        let mut seen = Seen::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.workers.max(1)).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                // Panics of cases have been caught: a panic here is one of the fleet itself.
                match worker.join() {
                    Ok(one) => seen.merge(&one),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        let mut failed = lock(&failures).clone();
        failed.sort_by_key(|one| one.number);
        Summary { failed, seen, elapsed: began.elapsed() }
    }
}

/// Locks a mutex, even if a thread has panicked with the lock: the data is consistent in any case.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

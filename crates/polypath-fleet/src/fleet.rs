//! Many cases on all processors.

mod seen;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polypath_sim::random::derive;

pub use seen::Seen;

use crate::case;
use crate::judge::{self, Failure};

/// Which cases to run.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// Where they begin: the n-th case has the number that follows from `first + n`.
    pub first: u64,
    /// How many.
    pub cases: u64,
    /// Only cases of the ns-2 profiles.
    pub ns2: bool,
    /// Threads.
    pub workers: usize,
}

/// A case that failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Its number.
    pub number: u64,
    /// What is wrong.
    pub failure: Failure,
}

/// How far a fleet is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Cases that have run.
    pub cases: u64,
    /// Of these, those that failed.
    pub failures: u64,
    /// Time since the beginning.
    pub elapsed: Duration,
}

/// What a fleet has found.
#[derive(Debug)]
pub struct Summary {
    /// Failed cases, in the order of their numbers.
    pub failed: Vec<Failed>,
    /// What happened in how many cases.
    pub seen: Seen,
    /// How long it took.
    pub elapsed: Duration,
}

impl Fleet {
    /// As many threads as there are processors.
    pub fn new(first: u64, cases: u64) -> Self {
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        Self { first, cases, ns2: false, workers }
    }

    /// The number of the n-th case.
    pub fn number(&self, n: u64) -> u64 {
        let number = derive(self.first.wrapping_add(n), "case");
        if self.ns2 { case::with_ns2_profile(number) } else { number }
    }

    /// Runs all cases. `failed` is called for each failure as soon as it is found, by one of the
    /// threads, and
    /// `progress` every ten seconds or so.
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
                // A panic of a case has been caught: one that arrives here is of the fleet itself.
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

/// The list is consistent whatever happened to a thread that held it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

//! What the threads of the supervisor share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use libc::pid_t;

use crate::listener::Listener;
use crate::table::Table;
use crate::watch::Watch;

/// What the threads share.
pub(crate) struct State {
    pub(crate) listener: Arc<Listener>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) table: Table,
    /// The smallest number of an SCTP descriptor.
    pub(crate) base: u32,
    pub(crate) interrupted: Interrupted,
}

/// Calls that wait for a connection and that the kernel starts again after a signal: the threads,
/// and the addresses of the sockets.
#[derive(Default)]
pub(crate) struct Interrupted(Mutex<HashSet<(pid_t, usize)>>);

impl Interrupted {
    /// Most of them: those that the program does not start again stay.
    const MOST: usize = 1024;

    pub(crate) fn insert(&self, key: (pid_t, usize)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= Self::MOST {
            all.clear();
        }
        all.insert(key);
    }

    pub(crate) fn remove(&self, key: (pid_t, usize)) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key)
    }
}

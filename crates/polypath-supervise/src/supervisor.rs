//! The threads that answer the program's system calls.
//!
//! A call is answered by one thread from the beginning to the end, and may wait. There is always
//! one more thread that waits for the next call.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::call::{Call, Stop};
use crate::dispatch;
use crate::listener::Listener;
use crate::state::{Interrupted, State};
use crate::table::Table;
use crate::watch::Watch;

/// Threads that may wait for the next call; others end.
const IDLE: usize = 4;

/// Size of a thread's stack.
const STACK: usize = 256 * 1024;

/// The threads.
pub(crate) struct Supervisor {
    pub(crate) state: State,
    /// Those that wait for the next call.
    idle: AtomicUsize,
}

impl Supervisor {
    /// Starts to answer.
    pub(crate) fn start(listener: Listener, base: u32) -> io::Result<Arc<Self>> {
        let listener = Arc::new(listener);
        let state = State {
            watch: Watch::start(listener.clone())?,
            listener,
            table: Table::new()?,
            base,
            interrupted: Interrupted::default(),
        };
        let supervisor = Arc::new(Self { state, idle: AtomicUsize::new(0) });
        supervisor.clone().spawn()?;
        Ok(supervisor)
    }

    fn spawn(self: Arc<Self>) -> io::Result<()> {
        // It counts from here on, so that no two threads start others in its place.
        self.idle.fetch_add(1, Ordering::AcqRel);
        let own = self.clone();
        let thread = std::thread::Builder::new().name("call".to_owned()).stack_size(STACK);
        let spawned = thread.spawn(move || own.serve());
        if spawned.is_err() {
            self.idle.fetch_sub(1, Ordering::AcqRel);
        }
        spawned.map(drop)
    }

    /// Answers calls.
    // A thread of its own.
    #[allow(clippy::disallowed_methods)]
    fn serve(self: Arc<Self>) {
        loop {
            let received = self.state.listener.receive();
            let others = self.idle.fetch_sub(1, Ordering::AcqRel) - 1;
            match received {
                Ok(notification) => {
                    if others == 0 && self.clone().spawn().is_err() {
                        // Others answer after this call, which must not wait for them for ever:
                        // there is one thread fewer than the system permits.
                        polypath_sockets::foreign::missed("more threads that wait");
                    }
                    let call = Call::new(&self.state, &notification);
                    let answer = catch_unwind(AssertUnwindSafe(|| dispatch::answer(&call)));
                    call.end(answer.unwrap_or(Err(Stop::Error(libc::EIO))));
                }
                // No process has the filter any more.
                Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => return,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
            if self.idle.fetch_add(1, Ordering::AcqRel) >= IDLE {
                self.idle.fetch_sub(1, Ordering::AcqRel);
                return;
            }
        }
    }
}

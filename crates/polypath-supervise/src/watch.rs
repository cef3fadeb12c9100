//! Ends the waiting of the supervisor's threads when the program's thread ends, or has to handle a
//! signal.
//!
//! Once the supervisor has received a call, the kernel lets only the end of the process interrupt
//! it. Nothing reports a signal that waits for the program's thread: it is looked for at intervals,
//! which grow with the number of calls that wait.

use std::ffi::c_int;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::listener::Listener;
use crate::target::{Signal, Target};

/// The signal that interrupts a thread of the supervisor: none that others send.
fn interrupting() -> c_int {
    libc::SIGRTMIN() + 1
}

/// Shortest interval.
const INTERVAL: Duration = Duration::from_millis(10);

/// How often a signal for any thread is seen before it counts as one for the thread that waits.
const PATIENCE: u32 = 5;

struct Slot {
    id: u64,
    target: Target,
    /// The thread of the supervisor.
    thread: libc::pthread_t,
    /// How often a signal for any thread was seen.
    seen: u32,
    /// Present during the last round: calls that take no time are not looked at.
    old: bool,
}

/// The calls in which threads of the supervisor may wait.
pub(crate) struct Watch {
    slots: Mutex<Vec<Slot>>,
    some: Condvar,
    listener: Arc<Listener>,
}

extern "C" fn nothing(_: c_int) {}

impl Watch {
    /// Starts the thread that watches.
    pub(crate) fn start(listener: Arc<Listener>) -> std::io::Result<Arc<Self>> {
        // SAFETY: all-zero bytes are a valid structure; the handler does nothing. Without
        // SA_RESTART, the signal interrupts system calls.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
            libc::sigaction(interrupting(), &raw const action, std::ptr::null_mut());
        }
        let watch = Arc::new(Self { slots: Mutex::default(), some: Condvar::new(), listener });
        let own = watch.clone();
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || own.run())?;
        Ok(watch)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // A thread of its own.
    #[allow(clippy::disallowed_methods)]
    fn run(&self) {
        loop {
            let mut slots = self.lock();
            while slots.is_empty() {
                slots = self.some.wait(slots).unwrap_or_else(PoisonError::into_inner);
            }
            let waiting: Vec<(u64, Target)> =
                slots.iter().filter(|slot| slot.old).map(|slot| (slot.id, slot.target)).collect();
            slots.iter_mut().for_each(|slot| slot.old = true);
            drop(slots);
            for (id, target) in &waiting {
                let signal = self.signal(*id, *target);
                if signal != Some(Signal::None) {
                    self.interrupt(*id, signal);
                }
            }
            std::thread::sleep(INTERVAL.max(Duration::from_millis(waiting.len() as u64)));
        }
    }

    /// The signal that the thread of a call has to handle; `None` once the call is over.
    fn signal(&self, id: u64, target: Target) -> Option<Signal> {
        if !self.listener.is_valid(id) {
            return None;
        }
        target.status().ok().map(|status| status.signal(target))
    }

    fn interrupt(&self, id: u64, signal: Option<Signal>) {
        if let Some(slot) = self.lock().iter_mut().find(|slot| slot.id == id) {
            slot.seen += 1;
            if signal != Some(Signal::Shared) || slot.seen >= PATIENCE {
                // SAFETY: the thread exists while the slot does, which the lock keeps there.
                unsafe { libc::pthread_kill(slot.thread, interrupting()) };
            }
        }
    }

    /// Runs `work` for a call. It is interrupted if the call must not wait any longer.
    pub(crate) fn during<T>(&self, id: u64, target: Target, work: impl FnOnce() -> T) -> T {
        // SAFETY: the call takes no argument.
        let thread = unsafe { libc::pthread_self() };
        let slot = Slot { id, target, thread, seen: 0, old: false };
        let first = {
            let mut slots = self.lock();
            slots.push(slot);
            slots.len() == 1
        };
        if first {
            self.some.notify_one();
        }
        let _leave = Leave(self, id);
        work()
    }

    /// Why a call that was interrupted cannot go on.
    pub(crate) fn reason(&self, id: u64, target: Target) -> Reason {
        match self.signal(id, target) {
            None => Reason::Over,
            Some(Signal::None) => Reason::None,
            Some(Signal::Own) => Reason::Restart,
            Some(Signal::Shared) => Reason::Interrupted,
        }
    }
}

/// Why a call was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Nothing any more: it goes on.
    None,
    /// The program's thread has ended.
    Over,
    /// A signal, after which the kernel decides whether the call starts again.
    Restart,
    /// A signal that may be another thread's.
    Interrupted,
}

/// Removes a slot.
struct Leave<'a>(&'a Watch, u64);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut slots = self.0.lock();
        if let Some(at) = slots.iter().position(|slot| slot.id == self.1) {
            slots.swap_remove(at);
        }
    }
}

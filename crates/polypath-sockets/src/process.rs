//! The process: fork and exit.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::end::{Descriptor, sent};
use crate::link::{Link, Phase, Route, lock};
use crate::{calls, engine, private, report, socket};

/// Locks held during a fork.
struct Frozen {
    table: socket::Frozen,
    engine: engine::Frozen,
    _report: std::sync::MutexGuard<'static, std::collections::BTreeMap<String, u64>>,
}

/// Time that the end of the program waits for its associations.
const LINGER: Duration = Duration::from_secs(5);

thread_local! {
    /// Locks held during a fork, by the thread that forks.
    static FROZEN: RefCell<Option<Frozen>> = const { RefCell::new(None) };
}

/// Receives the report of unsupported requests.
static REPORT: OnceLock<fn(&str)> = OnceLock::new();

/// Registers the handlers; called by the first SCTP socket.
pub(crate) fn register(report: fn(&str)) {
    REPORT.get_or_init(|| {
        socket::set_process();
        // SAFETY: the handlers are functions of this library, which is never unloaded.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
            libc::atexit(at_exit);
        }
        report
    });
}

/// Moves what waits for the program to where a child of fork finds it, too.
fn share(table: &socket::Frozen, engine: &engine::Frozen) {
    let share = |link: &Link, route: Option<Route>| {
        let end = route.as_ref().map(|route| route.fd.get_ref());
        // What is left of an association that is over is copied.
        let over = link.phase() == Phase::Closed && end.is_none();
        if !over
            && !link.inbox().share(end)
            && let Some(route) = route
        {
            engine::spawn(engine, async move {
                let flush = |end: &Descriptor| route.inbox.flush(end);
                let _ = sent(route.fd.get_ref(), flush).await;
            });
        }
    };
    for sock in table.values().filter(|sock| sock.is_local()) {
        let many = sock.many.as_ref();
        let route = many.map_or_else(|| sock.link.route(), |many| lock(&many.route).clone());
        share(&sock.link, route);
        sock.link.forget_unread();
        many.iter().flat_map(|many| many.all()).for_each(|link| link.forget_unread());
    }
    for arrived in engine::arrived(engine) {
        share(&arrived.link, arrived.link.route());
        arrived.link.forget_unread();
    }
}

extern "C" fn before_fork() {
    let _ = std::panic::catch_unwind(|| {
        let all =
            Frozen { table: socket::freeze(), engine: engine::freeze(), _report: report::freeze() };
        share(&all.table, &all.engine);
        FROZEN.with(|frozen| *frozen.borrow_mut() = Some(all));
    });
}

extern "C" fn after_fork() {
    let _ = std::panic::catch_unwind(|| FROZEN.with(|frozen| frozen.borrow_mut().take()));
}

extern "C" fn in_child() {
    let _ = std::panic::catch_unwind(|| {
        socket::set_process();
        if let Some(mut frozen) = FROZEN.with(|frozen| frozen.borrow_mut().take()) {
            socket::inherit(&mut frozen.table);
            engine::forget_arrived(&mut frozen.engine);
        }
        private::close_all_in_child();
    });
}

extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(finish);
}

/// Closes the sockets, waits until their associations are over, and reports unsupported requests.
pub fn finish() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if socket::is_borrowed()
        || DONE.swap(true, Ordering::AcqRel)
        || !engine::is_running()
        || !socket::is_quiet()
    {
        return;
    }
    for fd in socket::descriptors() {
        calls::close(fd);
    }
    engine::wait_until_over(LINGER);
    if let Ok(engine) = engine::engine()
        && engine.settings.report
        && let Some(report) = REPORT.get()
    {
        let ports = engine.ports.map(|ports| ports.report()).unwrap_or_default();
        report(&(report::text() + &ports));
    }
}

//! Messages and notifications that wait for the program.
//!
//! They wait in the memory of the process. A packet of the kind [`Kind::Ready`] in the socket pair
//! makes the program's descriptor readable meanwhile: it is there if and only if something waits,
//! except for the moment in which the engine adds several messages. A child of fork, which has no
//! access to this memory, may share the descriptor: once the process has forked, everything goes
//! through the pair ([`Inbox::share`]).

use std::collections::VecDeque;
use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::end::Descriptor;
use crate::errno::{self, Errno};
use crate::frame::{HEADER, Header, Kind};
use crate::real;

/// What waits for the program on a socket.
#[derive(Default)]
pub(crate) struct Inbox {
    /// What the program's threads have fetched: the engine does not wait for their lock. Locked
    /// before `state`.
    fetched: Mutex<VecDeque<Waiting>>,
    state: Mutex<State>,
    /// Held while the engine sends [`Kind::Ready`], without `state`: the program's thread that it
    /// wakes needs that. Locked after `state`.
    signalling: Mutex<()>,
    /// Packets with data that the program has not read.
    unread: AtomicI64,
    /// Notified when there is room again, or nothing reads.
    pub(crate) room: Notify,
    /// The last descriptor has been closed.
    closed: AtomicBool,
    /// See [`limit`](Self::limit); 0 if it was not called.
    limit: AtomicUsize,
}

#[derive(Default)]
struct State {
    packets: VecDeque<Waiting>,
    /// Sum of their weights.
    weight: usize,
    /// [`Kind::Ready`] is in the pair.
    signalled: bool,
    /// The engine waits for room.
    full: bool,
    /// Everything goes through the pair.
    shared: bool,
}

/// Maximum weight of what waits to be fetched, unless SO_RCVBUF is smaller; a single packet may be
/// larger.
const MOST: usize = 208 * 1024;

/// A packet that waits.
#[derive(Clone)]
struct Waiting {
    header: Header,
    payload: Bytes,
    /// Bytes that the program has read.
    read: usize,
}

impl Waiting {
    /// The memory that it takes, about.
    const fn weight(&self) -> usize {
        self.payload.len() + 1024
    }
}

/// Result of [`Inbox::push`].
pub(crate) enum Pushed {
    Done,
    /// There is no room.
    Full,
    /// The association has moved to another socket.
    Moved,
}

/// Result of [`Inbox::take`].
pub(crate) enum Found {
    /// Bytes of a packet: their number, and whether the message ends with them.
    Bytes {
        header: Header,
        size: usize,
        end: bool,
    },
    Nothing,
    /// The program's end of the pair has seen the end of the association.
    Over,
    /// Packets are in the pair.
    Shared,
}

/// Result of [`Inbox::next`].
pub(crate) enum Next {
    /// Header and size of a packet of which nothing is read yet.
    Packet(Header, usize),
    Nothing,
    /// Packets are in the pair.
    Shared,
}

impl Inbox {
    /// The inbox of an association that a child of fork may accept, too.
    pub(crate) fn new_shared() -> Self {
        let state = State { shared: true, ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    fn fetched(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.lock().shared
    }

    /// The last descriptor of this process is about to be closed. A thread that has just looked it
    /// up may still wait in the pair, whose end the engine does not see until then, and reads
    /// nothing from here.
    pub(crate) fn close(&self) {
        self.closed.store(!self.is_shared(), Ordering::Release);
    }

    /// Whether nothing reads, so that there will be no room.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// In a child of fork. Packets of an association that was over before do not come from the
    /// parent any more: the child has a copy of them, as the parent has.
    pub(crate) fn for_child(&self) -> Self {
        let (fetched, state) = match (self.fetched.try_lock(), self.state.try_lock()) {
            (Ok(fetched), Ok(state)) if !state.shared => (fetched.clone(), state),
            _ => return Self::new_shared(),
        };
        let (packets, weight, signalled) = (state.packets.clone(), state.weight, state.signalled);
        let state = State { packets, weight, signalled, ..State::default() };
        Self { fetched: Mutex::new(fetched), state: Mutex::new(state), ..Self::default() }
    }

    /// Sets the maximum weight of what waits to be fetched: more than this of the receive window
    /// is not opened before the program reads.
    pub(crate) fn limit(&self, most: usize) {
        self.limit.store(most.clamp(1, MOST), Ordering::Release);
    }

    pub(crate) fn most(&self) -> usize {
        match self.limit.load(Ordering::Acquire) {
            0 => MOST,
            limit => limit,
        }
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Ordering::Acquire) > 0
    }

    /// Counts a packet that was sent through the pair.
    pub(crate) fn count_unread(&self, header: &Header) {
        self.unread.fetch_add(i64::from(header.is_data()), Ordering::AcqRel);
    }

    /// Runs `work` while nothing is pushed.
    pub(crate) fn hold(&self, work: impl FnOnce()) {
        let _state = self.lock();
        work();
    }

    /// Counts a packet that the program has read from the pair.
    pub(crate) fn count_read(&self, header: &Header) {
        self.unread.fetch_sub(i64::from(header.is_data()), Ordering::AcqRel);
    }

    /// Adds a packet if the association, or the socket of all of them, `stays` here. Fails with
    /// `WouldBlock` if the pair has no room for it, and otherwise if the program has closed the
    /// socket.
    pub(crate) fn push(
        &self,
        end: &Descriptor,
        header: &Header,
        payload: &Bytes,
        stays: impl FnOnce() -> bool,
    ) -> io::Result<Pushed> {
        let mut state = self.lock();
        if !stays() {
            return Ok(Pushed::Moved);
        }
        if state.shared {
            state.flush(end)?;
            end.send(header, payload, None)?;
        } else {
            let packet = Waiting { header: *header, payload: payload.clone(), read: 0 };
            if state.weight > 0 && state.weight + packet.weight() > self.most() {
                state.full = true;
                return Ok(Pushed::Full);
            }
            state.add(packet);
        }
        self.count_unread(header);
        Ok(Pushed::Done)
    }

    /// Makes the program's descriptor readable if something waits.
    pub(crate) fn signal(&self, end: &Descriptor) {
        let mut state = self.lock();
        if state.has_news() {
            state.signalled = true;
            let _signalling = self.sending();
            drop(state);
            // An error means that the program has closed the socket.
            let _ = end.send(&Header::new(Kind::Ready), &[], None);
        }
    }

    /// Waits until what [`signal`](Self::signal) sends is in the pair.
    fn sending(&self) -> MutexGuard<'_, ()> {
        self.signalling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the descriptor unreadable unless more waits.
    fn unsignal(&self, state: &mut State, fd: c_int) {
        if state.signalled && state.packets.is_empty() && !state.shared {
            if !drop_head(fd) {
                drop(self.sending());
                drop_head(fd);
            }
            state.signalled = false;
        }
    }

    /// Takes at most `room` bytes of the next packet without waiting, or with `peek` looks at them.
    /// They stay if `copy` fails. `fd` is the program's end of the pair.
    pub(crate) fn take(
        &self,
        fd: c_int,
        room: usize,
        peek: bool,
        copy: impl FnOnce(&[u8]) -> Errno<()>,
    ) -> Errno<Found> {
        let mut fetched = self.fetched();
        if fetched.is_empty() {
            let mut state = self.lock();
            if state.shared {
                return Ok(Found::Shared);
            }
            // What the engine is still adding to is not there yet.
            if !state.signalled || state.packets.is_empty() {
                return Ok(state.idle(fd));
            }
            std::mem::swap(&mut *fetched, &mut state.packets);
            state.weight = 0;
            if std::mem::take(&mut state.full) {
                self.room.notify_waiters();
            }
        }
        let Some(first) = fetched.front_mut() else { return Ok(Found::Nothing) };
        let (header, left) = (first.header, first.payload.len() - first.read);
        let size = left.min(room);
        copy(&first.payload[first.read..first.read + size])?;
        let end = header.end && size == left;
        if !peek {
            first.read += size;
            if size == left {
                fetched.pop_front();
                self.count_read(&header);
            }
        }
        if fetched.is_empty() {
            self.unsignal(&mut self.lock(), fd);
        }
        Ok(Found::Bytes { header, size, end })
    }

    /// Size of what is left of the next packet, unless packets are in the pair.
    pub(crate) fn next_size(&self) -> Option<usize> {
        let (fetched, state) = (self.fetched(), self.lock());
        let first = fetched.front().or_else(|| state.packets.front());
        let size = first.map_or(0, |first| first.payload.len() - first.read);
        (!state.shared || !fetched.is_empty()).then_some(size)
    }

    /// The next packet, unless the program has read a part of it.
    pub(crate) fn next(&self) -> Next {
        let (fetched, state) = (self.fetched(), self.lock());
        match fetched.front().or_else(|| state.packets.front()) {
            Some(first) if first.read == 0 => Next::Packet(first.header, first.payload.len()),
            None if state.shared => Next::Shared,
            _ => Next::Nothing,
        }
    }

    /// Whether the program has read a part of a packet.
    pub(crate) fn is_partly_read(&self) -> bool {
        self.fetched().front().is_some_and(|first| first.read > 0)
    }

    /// Moves everything to the pair before a fork, and all that follows. `end` is the engine's end
    /// of the pair, if the association is not over. False if something is left for
    /// [`flush`](Self::flush).
    pub(crate) fn share(&self, end: Option<&Descriptor>) -> bool {
        let mut fetched = self.fetched();
        let mut state = self.lock();
        state.put_back(&mut fetched);
        drop(self.sending());
        state.shared = true;
        match end.map_or(Ok(()), |end| state.flush(end)) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                // It is just over.
                state.shared = false;
                true
            }
        }
    }

    /// Moves the rest to the pair, if everything goes through it.
    pub(crate) fn flush(&self, end: &Descriptor) -> io::Result<()> {
        let mut state = self.lock();
        if state.shared { state.flush(end) } else { Ok(()) }
    }

    /// Moves the packets of an association to another inbox. `None` if packets are in the pair.
    /// Nothing is pushed or taken before `moved` has returned.
    pub(crate) fn give<R>(
        &self,
        fd: c_int,
        association: i32,
        to: (&Self, &Descriptor),
        moved: impl FnOnce() -> R,
    ) -> Option<R> {
        let mut fetched = self.fetched();
        let mut state = self.lock();
        if state.shared {
            return None;
        }
        state.put_back(&mut fetched);
        let of = |packet: &Waiting| packet.header.association == association;
        let (given, kept) = std::mem::take(&mut state.packets).into_iter().partition(of);
        let given: VecDeque<Waiting> = given;
        state.packets = kept;
        state.weight = state.packets.iter().map(Waiting::weight).sum();
        self.unsignal(&mut state, fd);
        let mut other = to.0.lock();
        for packet in given {
            let header = packet.header;
            self.count_read(&header);
            other.add(packet);
            to.0.count_unread(&header);
        }
        drop(other);
        to.0.signal(to.1);
        let result = moved();
        self.room.notify_waiters();
        Some(result)
    }
}

impl State {
    fn add(&mut self, packet: Waiting) {
        self.weight += packet.weight();
        self.packets.push_back(packet);
    }

    /// Whether something waits that the program does not know of.
    fn has_news(&self) -> bool {
        !self.packets.is_empty() && !self.signalled && !self.shared
    }

    /// Puts back what a thread has fetched.
    fn put_back(&mut self, fetched: &mut VecDeque<Waiting>) {
        self.weight += fetched.iter().map(Waiting::weight).sum::<usize>();
        fetched.append(&mut self.packets);
        std::mem::swap(fetched, &mut self.packets);
    }

    /// What the pair has to report while no packet waits.
    fn idle(&self, fd: c_int) -> Found {
        let mut again = true;
        loop {
            let mut byte = 0u8;
            let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
            // SAFETY: the buffer has room for one byte.
            match unsafe { real::recv(fd, (&raw mut byte).cast(), 1, flags) } {
                // Something else has come that way: the program's own doing.
                1.. => _ = drop_head(fd),
                0 => return Found::Over,
                // Also if the descriptor was closed meanwhile: waiting reports that.
                _ if errno::get() != libc::ECONNRESET => return Found::Nothing,
                // The engine's end was closed before it had read everything. Reported once.
                _ if again => again = false,
                _ => return Found::Over,
            }
        }
    }

    /// Sends what waits through the pair.
    fn flush(&mut self, end: &Descriptor) -> io::Result<()> {
        while let Some(first) = self.packets.front() {
            end.send(&first.header, &first.payload[first.read..], None)?;
            self.packets.pop_front();
        }
        self.weight = 0;
        Ok(())
    }
}

/// Header and size of the packet at the head of the pair, if there is one. Removes [`Kind::Ready`]
/// before it: that was sent before the process has forked, and what was ready follows.
pub(crate) fn next_in_pair(fd: c_int) -> Option<(Header, usize)> {
    loop {
        let mut header = [0; HEADER];
        let flags = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
        // SAFETY: the buffer is valid for its length.
        let size = unsafe { real::recv(fd, header.as_mut_ptr().cast(), HEADER, flags) };
        let size = usize::try_from(size).ok()?.checked_sub(HEADER)?;
        match Header::read(&header)? {
            Header { kind: Kind::Ready, .. } => _ = drop_head(fd),
            header => return Some((header, size)),
        }
    }
}

/// Removes the packet at the head of the pair; false if there is none.
fn drop_head(fd: c_int) -> bool {
    let mut byte = 0u8;
    // SAFETY: the buffer has room for one byte; the kernel drops the rest of the packet.
    unsafe { real::recv(fd, (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT) > 0 }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::sync::Arc;

    use tokio::io::unix::AsyncFd;
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::end::{pair, register};

    fn ends() -> (Runtime, OwnedFd, AsyncFd<Descriptor>) {
        real::call_directly();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (program, end) = pair().unwrap();
        let end = {
            let _inside = runtime.enter();
            register(Arc::new(end)).unwrap()
        };
        (runtime, program, end)
    }

    fn is_readable(fd: &OwnedFd) -> bool {
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is one valid entry.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    fn push(inbox: &Inbox, end: &AsyncFd<Descriptor>, association: i32, text: &'static str) {
        let header = Header { association, ..Header::new(Kind::Data) };
        let pushed =
            inbox.push(end.get_ref(), &header, &Bytes::from_static(text.as_bytes()), || true);
        assert!(matches!(pushed, Ok(Pushed::Done)));
        inbox.signal(end.get_ref());
    }

    /// The bytes that `take` finds, and whether the message ends.
    fn taken(inbox: &Inbox, fd: &OwnedFd, room: usize, peek: bool) -> Option<(String, bool)> {
        let mut text = String::new();
        let copy = |bytes: &[u8]| {
            text.push_str(std::str::from_utf8(bytes).unwrap());
            Ok(())
        };
        match inbox.take(fd.as_raw_fd(), room, peek, copy).unwrap() {
            Found::Bytes { end, .. } => Some((text, end)),
            _ => None,
        }
    }

    /// Looks for something without taking it.
    fn looked(inbox: &Inbox, fd: &OwnedFd) -> Found {
        inbox.take(fd.as_raw_fd(), 9, true, |_| Ok(())).unwrap()
    }

    #[test]
    fn the_descriptor_is_readable_while_something_waits() {
        let (_runtime, fd, end) = ends();
        let inbox = Inbox::default();
        assert!(matches!(looked(&inbox, &fd), Found::Nothing));
        push(&inbox, &end, 1, "first");
        push(&inbox, &end, 1, "second");
        assert_eq!(taken(&inbox, &fd, 9, true), Some(("first".to_owned(), true)));
        assert_eq!(taken(&inbox, &fd, 2, false), Some(("fi".to_owned(), false)));
        assert_eq!(inbox.next_size(), Some(3));
        assert!(matches!(inbox.next(), Next::Nothing));
        let failed = inbox.take(fd.as_raw_fd(), 9, false, |_| Err(libc::EFAULT));
        assert!(matches!(failed, Err(libc::EFAULT)));
        assert_eq!(taken(&inbox, &fd, 9, false), Some(("rst".to_owned(), true)));
        assert!(is_readable(&fd) && inbox.has_unread());
        assert!(matches!(inbox.next(), Next::Packet(_, 6)));
        assert_eq!(taken(&inbox, &fd, 9, false), Some(("second".to_owned(), true)));
        assert!(!is_readable(&fd) && !inbox.has_unread());
        push(&inbox, &end, 1, "last");
        end.get_ref().shutdown();
        assert_eq!(taken(&inbox, &fd, 9, false), Some(("last".to_owned(), true)));
        assert!(matches!(looked(&inbox, &fd), Found::Over));
    }

    #[test]
    fn a_program_that_does_not_read_stops_the_engine() {
        let (_runtime, fd, end) = ends();
        let inbox = Inbox::default();
        let (header, large) = (Header::new(Kind::Data), Bytes::from(vec![0; 9000]));
        let push = || inbox.push(end.get_ref(), &header, &large, || true).unwrap();
        let mut count = 0;
        while matches!(push(), Pushed::Done) {
            count += 1;
        }
        assert_eq!(count, MOST / (9000 + 1024));
        inbox.signal(end.get_ref());
        assert!(is_readable(&fd));
        // A thread that reads makes room.
        assert!(matches!(looked(&inbox, &fd), Found::Bytes { .. }));
        while matches!(push(), Pushed::Done) {
            count += 1;
        }
        assert_eq!(count, 2 * (MOST / (9000 + 1024)));
        // The pair has no room for all of it.
        assert!(!inbox.share(Some(end.get_ref())));
        assert!(matches!(looked(&inbox, &fd), Found::Shared));
        let mut seen = 0;
        while is_readable(&fd) {
            assert!(matches!(next_in_pair(fd.as_raw_fd()), Some((_, 9000))));
            drop_head(fd.as_raw_fd());
            seen += 1;
            let _ = inbox.flush(end.get_ref());
        }
        assert_eq!(seen, count);
    }

    #[test]
    fn an_association_takes_its_packets_along() {
        let (_runtime, fd, end) = ends();
        let (_other_runtime, other_fd, other_end) = ends();
        let (inbox, other) = (Inbox::default(), Inbox::default());
        push(&inbox, &end, 1, "stays");
        push(&inbox, &end, 2, "moves");
        let moved = inbox.give(fd.as_raw_fd(), 2, (&other, other_end.get_ref()), || true);
        assert_eq!(moved, Some(true));
        assert!(is_readable(&fd) && is_readable(&other_fd));
        assert_eq!(taken(&other, &other_fd, 9, false), Some(("moves".to_owned(), true)));
        assert_eq!(taken(&inbox, &fd, 9, false), Some(("stays".to_owned(), true)));
        assert!(!is_readable(&fd) && !is_readable(&other_fd));
        assert!(!inbox.has_unread() && !other.has_unread());
    }
}

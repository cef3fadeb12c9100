//! The connections of all paths, and when their timers expire.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use polypath_proto::{FourTuple, Time};

use crate::connection::{Connection, Phase};
use crate::fingerprint::Fingerprint;

pub(crate) type Key = (SocketAddr, IpAddr);

/// The connections of one path: `current`, which is in use; `next`, which may replace it because
/// the peer has started again (RFC 9147 5.11), or because this side found the peer mute or the keys
/// old; and `old`, which was replaced and is kept while its records may be in flight.
pub(crate) struct Slot {
    pub(crate) way: FourTuple,
    pub(crate) current: Connection,
    pub(crate) next: Option<Connection>,
    pub(crate) old: Option<Connection>,
    /// When this side last started a replacement; `replaced`: when `current` replaced `old`.
    pub(crate) begun: Option<Time>,
    pub(crate) replaced: Option<Time>,
    /// Whether packets were sent that only the peer with this certificate may receive.
    pub(crate) expected: bool,
    /// Number of packets after which `current` is replaced.
    pub(crate) rekey: u64,
    /// The timer's time in the index of [`Slots`].
    pub(crate) timeout: Option<Time>,
}

impl Slot {
    pub(crate) fn new(way: FourTuple, current: Connection) -> Self {
        Self {
            way,
            current,
            next: None,
            old: None,
            begun: None,
            replaced: None,
            expected: false,
            rekey: u64::MAX,
            timeout: None,
        }
    }

    pub(crate) fn wants(&self) -> Option<Time> {
        let next = self.next.as_ref().and_then(|next| next.timeout);
        [self.current.timeout, next].into_iter().flatten().min()
    }

    /// The handshake of this side that is not over, if there is one.
    pub(crate) fn attempt(&self) -> Option<&Connection> {
        let attempt = |c: &&Connection| c.client && c.phase() == Phase::Opening;
        self.next.as_ref().into_iter().chain([&self.current]).find(attempt)
    }

    /// The connection in use was mute, and its peer has answered: gives up a handshake that this
    /// side has started meanwhile, unless the peer has answered it too (the peer may have completed
    /// it and use it already), or the keys are old.
    pub(crate) fn give_up_probe(&mut self) {
        if self.current.sealed < self.rekey {
            self.next.take_if(|next| next.client && !next.heard);
        }
    }

    pub(crate) fn is_opening(&self) -> bool {
        !self.current.is_open() && !self.current.client
    }
}

/// The connections of all paths, with an index of their timers.
#[derive(Default)]
pub(crate) struct Slots {
    all: BTreeMap<Key, Slot>,
    timeouts: BTreeSet<(Time, Key)>,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Slot> {
        self.all.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Slot> {
        self.all.get_mut(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Slot)> {
        self.all.iter()
    }

    /// Remote addresses and peers of the established connections that the layer above expects.
    pub(crate) fn expected(&self) -> BTreeSet<(SocketAddr, Fingerprint)> {
        let expected = self.all.values().filter(|slot| slot.expected);
        expected
            .filter_map(|slot| match slot.current.phase() {
                Phase::Open(peer) => Some((slot.way.remote, peer)),
                _ => None,
            })
            .collect()
    }

    fn range(&self, remote: SocketAddr) -> impl Iterator<Item = (&Key, &Slot)> {
        let first = (remote, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.all.range(first..).take_while(move |((to, _), _)| *to == remote)
    }

    /// The connections of all paths to an address.
    pub(crate) fn to(&self, remote: SocketAddr) -> impl Iterator<Item = &Slot> {
        self.range(remote).map(|(_, slot)| slot)
    }

    pub(crate) fn insert(&mut self, key: Key, slot: Slot) {
        self.all.insert(key, slot);
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        if let Some(slot) = self.all.remove(key)
            && let Some(timeout) = slot.timeout
        {
            self.timeouts.remove(&(timeout, *key));
        }
    }

    /// When the first timer expires.
    pub(crate) fn timeout(&self) -> Option<Time> {
        self.timeouts.first().map(|(time, _)| *time)
    }

    /// A path whose timer has expired; it is not returned again until it is indexed again.
    pub(crate) fn due(&mut self, now: Time) -> Option<Key> {
        let (_, key) = *self.timeouts.first().filter(|(time, _)| *time <= now)?;
        self.timeouts.pop_first();
        if let Some(slot) = self.all.get_mut(&key) {
            slot.timeout = None;
        }
        Some(key)
    }

    /// Updates a path's timer in the index.
    pub(crate) fn index(&mut self, key: Key) {
        let Some(slot) = self.all.get_mut(&key) else { return };
        let wants = slot.wants();
        if wants != slot.timeout {
            if let Some(old) = slot.timeout {
                self.timeouts.remove(&(old, key));
            }
            slot.timeout = wants;
            if let Some(new) = wants {
                self.timeouts.insert((new, key));
            }
        }
    }

    /// The connection that sends a packet. If the local address is unspecified, the one that was
    /// used last.
    pub(crate) fn find(&self, way: FourTuple) -> Key {
        let key = (way.remote, way.local.ip());
        if !way.local.ip().is_unspecified() {
            return key;
        }
        let all = self.range(way.remote);
        all.max_by_key(|(_, slot)| slot.current.used).map_or(key, |(key, _)| *key)
    }

    /// The connection that a datagram is for. One that was started from an unspecified local
    /// address gets the address that received the answer.
    pub(crate) fn adopt(&mut self, way: FourTuple) -> Key {
        let key = (way.remote, way.local.ip());
        let any = if way.local.is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        };
        if !self.all.contains_key(&key)
            && let Some(mut slot) = self.all.remove(&(way.remote, any))
        {
            if let Some(timeout) = slot.timeout.take() {
                self.timeouts.remove(&(timeout, (way.remote, any)));
            }
            slot.way = way;
            self.all.insert(key, slot);
            self.index(key);
        }
        key
    }
}

//! The connections of all ways, and when they want to be called.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use polypath_proto::{FourTuple, Time};

use crate::connection::{Connection, Phase};
use crate::fingerprint::Fingerprint;

pub(crate) type Key = (SocketAddr, IpAddr);

/// The connections of one way: the one in use, and one that a peer that has begun anew is about to
/// replace it with (RFC 9147 5.11), or this side because the other is mute or its keys are old; and the one
/// that was replaced, as long as something may be on its way.
pub(crate) struct Slot {
    pub(crate) way: FourTuple,
    pub(crate) current: Connection,
    pub(crate) next: Option<Connection>,
    pub(crate) old: Option<Connection>,
    /// When this side last began another one, and when the one in use replaced the old one.
    pub(crate) begun: Option<Time>,
    pub(crate) replaced: Option<Time>,
    /// Packets have been sent to its peer by whoever expects this certificate.
    pub(crate) expected: bool,
    /// Packets after which the one in use is replaced.
    pub(crate) rekey: u64,
    /// As indexed.
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

    /// A handshake of this side that is not over.
    pub(crate) fn attempt(&self) -> Option<&Connection> {
        let attempt = |c: &&Connection| c.client && c.phase() == Phase::Opening;
        self.next.as_ref().into_iter().chain([&self.current]).find(attempt)
    }

    /// The connection in use was mute, and its peer has answered after all: a handshake that this side has
    /// begun meanwhile is given up, unless the peer has answered that as well (it may have completed it, and
    /// use it already), or the keys are old.
    pub(crate) fn give_up_probe(&mut self) {
        if self.current.sealed < self.rekey {
            self.next.take_if(|next| next.client && !next.heard);
        }
    }

    pub(crate) fn is_opening(&self) -> bool {
        !self.current.is_open() && !self.current.client
    }
}

/// All of them.
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

    /// The remote addresses and peers that packets were sent to by whoever expects them.
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

    /// Those of all ways to an address.
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

    /// When the first of them wants to be called.
    pub(crate) fn timeout(&self) -> Option<Time> {
        self.timeouts.first().map(|(time, _)| *time)
    }

    /// One that wants to be called by now; it is not named again until it is indexed.
    pub(crate) fn due(&mut self, now: Time) -> Option<Key> {
        let (_, key) = *self.timeouts.first().filter(|(time, _)| *time <= now)?;
        self.timeouts.pop_first();
        if let Some(slot) = self.all.get_mut(&key) {
            slot.timeout = None;
        }
        Some(key)
    }

    /// Notes when it wants to be called.
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

    /// The connection that a packet goes over. If it does not matter from which address, the one that
    /// was used last.
    pub(crate) fn find(&self, way: FourTuple) -> Key {
        let key = (way.remote, way.local.ip());
        if !way.local.ip().is_unspecified() {
            return key;
        }
        let all = self.range(way.remote);
        all.max_by_key(|(_, slot)| slot.current.used).map_or(key, |(key, _)| *key)
    }

    /// The connection that a datagram comes over. One that was begun from any address gets the one that
    /// the answer came to.
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

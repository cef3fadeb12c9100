//! DTLS between the protocol and the sockets (RFC 8261).
//!
//! An association belongs to whoever has the certificate that its first packet came from: nobody else's
//! packets reach it, and its packets go to nobody else, over whichever path.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use polypath_dtls::{self as dtls, Event, Fingerprint, Layer, Refusal};
use polypath_proto::wire::{Checksum, Chunk, CommonHeader, Packet, PacketWriter};
use polypath_proto::{Ecn, FourTuple, Time, Transmit};

use crate::shared::{Shared, State};

/// Refusals that are kept for whoever asks.
const REFUSALS: usize = 64;

/// The cause of the ABORT that answers an INIT in clear where everything has to be encrypted.
pub const ENCRYPTED_ONLY: &str = "this side takes nothing that is not encrypted";

/// The layer, and where it writes to.
pub(crate) struct Secure {
    layer: Layer,
    /// Records for the sockets, each as large as the one before.
    pub(crate) records: Vec<u8>,
    closed: bool,
}

impl Secure {
    pub(crate) const fn new(layer: Layer) -> Self {
        Self { layer, records: Vec::new(), closed: false }
    }

    /// A datagram: decrypts it and passes it on. Returns what is to be answered in clear.
    pub(crate) fn receive(
        &mut self,
        state: &mut State,
        now: Time,
        way: FourTuple,
        ecn: Ecn,
        datagram: &[u8],
    ) -> Option<Vec<u8>> {
        if let Some(answer) = answer_in_clear(datagram) {
            return Some(answer);
        }
        self.layer.handle_datagram(now, way, datagram, &mut Above { state, now, way, ecn });
        None
    }

    /// Encrypts what the protocol has written: [`records`](Self::records) are to be sent then, over the way
    /// that is returned, each in a datagram of so many bytes but the last.
    pub(crate) fn seal(
        &mut self,
        now: Time,
        way: FourTuple,
        transmit: &Transmit,
        peer: Option<Fingerprint>,
        packets: &[u8],
    ) -> Option<(FourTuple, usize)> {
        self.records.clear();
        let mut sealed = None;
        for packet in packets.chunks(transmit.segment_size.unwrap_or(transmit.size).max(1)) {
            let before = self.records.len();
            if let Some(way) = self.layer.seal(now, way, peer, packet, &mut self.records) {
                sealed.get_or_insert((way, self.records.len() - before));
            }
        }
        sealed
    }

    /// The next datagram of a handshake.
    pub(crate) fn poll_transmit(&mut self) -> Option<(FourTuple, Vec<u8>)> {
        self.layer.poll_transmit()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.layer.poll_timeout()
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.layer.handle_timeout(now);
    }

    /// Whether a message of the network shows a record of ours.
    pub(crate) fn has_sent(&self, remote: SocketAddr, quoted: &[u8]) -> bool {
        self.layer.has_sent(remote, quoted)
    }

    /// Tells the handles what has become of connections.
    pub(crate) fn tell(&mut self, shared: &Shared) {
        let mut state = None;
        while let Some(event) = self.layer.poll_event() {
            match event {
                Event::Opened { way, peer } => {
                    tracing::debug!("{} and {} encrypt, {peer:?}", way.local, way.remote);
                }
                Event::Refused { way, why } => {
                    tracing::debug!("{} and {} do not: {why}", way.local, way.remote);
                    state.get_or_insert_with(|| shared.lock()).refuse(shared, way.remote.ip(), why);
                }
                _ => {}
            }
        }
    }

    pub(crate) const fn stats(&self) -> dtls::Stats {
        self.layer.stats()
    }

    /// Says goodbye, once; true if that is new.
    pub(crate) fn close(&mut self, now: Time) -> bool {
        let new = !std::mem::replace(&mut self.closed, true);
        if new {
            self.layer.close(now);
        }
        new
    }
}

/// The associations, which the packets of one datagram are for.
struct Above<'a> {
    state: &'a mut State,
    now: Time,
    way: FourTuple,
    ecn: Ecn,
}

impl dtls::Upper for Above<'_> {
    fn deliver(&mut self, peer: Fingerprint, packet: &[u8]) {
        self.state.deliver(self.now, self.way, self.ecn, peer, packet);
    }

    /// The paths of open associations.
    fn in_use(&self) -> BTreeSet<(SocketAddr, Fingerprint)> {
        let open = self.state.entries.iter().filter(|(_, entry)| entry.closed.is_none());
        open.filter_map(|(id, entry)| Some((self.state.proto.association(*id)?, entry.peer?)))
            .flat_map(|(association, peer)| {
                let paths = association.paths();
                paths.map(move |path| (SocketAddr::new(path.remote, path.remote_port), peer))
            })
            .collect()
    }
}

impl State {
    /// A packet from who has this certificate.
    fn deliver(&mut self, now: Time, way: FourTuple, ecn: Ecn, from: Fingerprint, packet: &[u8]) {
        let owner = self.proto.owner(&way, packet);
        let known = owner.and_then(|id| self.entries.get(&id)).and_then(|entry| entry.peer);
        if known.is_some_and(|known| known != from) {
            self.intruders += 1;
            return;
        }
        self.proto.handle_datagram(now, way, ecn, packet);
        if known.is_none()
            && let Some(id) = owner.or_else(|| self.proto.owner(&way, packet))
        {
            self.entry(id).peer = Some(from);
        }
    }

    /// There is no connection of DTLS with this address: associations that wait for it wait no longer.
    fn refuse(&mut self, shared: &Shared, remote: IpAddr, why: Refusal) {
        if self.refusals.len() < REFUSALS || self.refusals.contains_key(&remote) {
            self.refusals.insert(remote, why);
        }
        let now = shared.now();
        let waiting: Vec<_> = self
            .entries
            .iter()
            .filter(|(id, entry)| {
                let paths = self.proto.association(**id).map(|a| a.paths());
                let has = paths.is_some_and(|mut paths| paths.any(|path| path.remote == remote));
                has && !entry.established && entry.closed.is_none()
            })
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            self.entry(id).refused = Some(why);
            if let Some(association) = self.proto.association_mut(id) {
                association.abort(now, b"");
            }
        }
        self.dispatch_events(shared);
        self.poke();
    }
}

/// What a host that encrypts answers to an INIT in clear: an ABORT that says so. Everything else in clear
/// is silently dropped.
fn answer_in_clear(datagram: &[u8]) -> Option<Vec<u8>> {
    // Tag 0, and an INIT: no record begins so that would pass the checksum as well.
    if datagram.get(4..8) != Some(&[0; 4]) || datagram.get(12) != Some(&1) {
        return None;
    }
    let packet = Packet::parse(datagram, Checksum::Verify).ok()?;
    let Some(Ok(Chunk::Init(init))) = packet.chunks().next() else { return None };
    let header = packet.header();
    if init.initiate_tag.0 == 0 {
        return None;
    }
    let mut answer = vec![0; 128];
    let header = CommonHeader {
        source_port: header.destination_port,
        destination_port: header.source_port,
        verification_tag: init.initiate_tag,
    };
    let mut writer = PacketWriter::new(&mut answer, header);
    writer.abort(false, |causes| causes.user_initiated_abort(ENCRYPTED_ONLY.as_bytes())).ok()?;
    let len = writer.finish(Checksum::Verify);
    answer.truncate(len);
    Some(answer)
}

/// What a host that does not encrypt answers to the beginning of a handshake of DTLS.
pub(crate) fn answer_hello(datagram: &[u8]) -> Option<Vec<u8>> {
    dtls::is_client_hello(datagram).then(|| dtls::REFUSAL.to_vec())
}

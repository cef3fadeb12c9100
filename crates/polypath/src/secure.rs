//! DTLS between the protocol and the sockets (RFC 8261).
//!
//! An association belongs to the certificate that its first packet came from: on every path,
//! packets from other certificates are dropped, and its own packets are only sent to that
//! certificate.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use polypath_dtls::{self as dtls, Event, Fingerprint, Layer, Refusal};
use polypath_proto::wire::{Checksum, Chunk, CommonHeader, Packet, PacketWriter};
use polypath_proto::{Ecn, FourTuple, Time, Transmit};

use crate::shared::{Shared, State};

/// Maximum number of refusals kept for [`Endpoint::refusal`](crate::Endpoint::refusal).
const REFUSALS: usize = 64;

/// Cause in the ABORT that answers an unencrypted INIT on an endpoint that requires encryption.
pub const ENCRYPTED_ONLY: &str = "this side takes nothing that is not encrypted";

/// The DTLS layer and its output buffer.
pub(crate) struct Secure {
    layer: Layer,
    /// Records to send, all of the same size except the last.
    pub(crate) records: Vec<u8>,
    closed: bool,
}

impl Secure {
    pub(crate) const fn new(layer: Layer) -> Self {
        Self { layer, records: Vec::new(), closed: false }
    }

    /// Decrypts a datagram and passes it on. Returns a reply to send in clear, if one is due.
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

    /// Encrypts the protocol's packets into [`records`](Self::records). Returns the connection to
    /// send them on, and the size in bytes of each datagram except the last.
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

    /// The next datagram of the DTLS layer itself, such as a handshake message.
    pub(crate) fn poll_transmit(&mut self) -> Option<(FourTuple, Vec<u8>)> {
        self.layer.poll_transmit()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.layer.poll_timeout()
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.layer.handle_timeout(now);
    }

    /// Whether a datagram quoted in an ICMP error is a record that this side sent.
    pub(crate) fn has_sent(&self, remote: SocketAddr, quoted: &[u8]) -> bool {
        self.layer.has_sent(remote, quoted)
    }

    /// Reports events of DTLS connections to the handles.
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

    /// Sends close alerts on all connections, once; true at the first call.
    pub(crate) fn close(&mut self, now: Time) -> bool {
        let new = !std::mem::replace(&mut self.closed, true);
        if new {
            self.layer.close(now);
        }
        new
    }
}

/// The receiver of decrypted packets, with the context of their datagram.
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
    /// Passes a packet that came from this certificate to its association.
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

    /// Reports that there is no DTLS connection with this address, and ends the associations that
    /// wait for one.
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

/// Reply of an endpoint that requires encryption to an unencrypted INIT: an ABORT that gives this
/// reason. Everything else in clear is silently dropped.
fn answer_in_clear(datagram: &[u8]) -> Option<Vec<u8>> {
    // Verification tag 0 and an INIT chunk: no DTLS record that begins with these bytes passes the
    // checksum.
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

/// Reply of an endpoint without encryption to a DTLS ClientHello.
pub(crate) fn answer_hello(datagram: &[u8]) -> Option<Vec<u8>> {
    dtls::is_client_hello(datagram).then(|| dtls::REFUSAL.to_vec())
}

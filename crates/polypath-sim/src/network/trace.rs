//! Trace of every packet of every association at every link, in columns: the contents of the
//! packets and their fates.
//!
//! Three tables: [`Hops`] has a row for each packet at each link, [`Packets`] one for each packet,
//! [`Chunks`] one for each chunk. TSNs count from 1, the first DATA chunk of their direction, so
//! that runs of different implementations can be compared.

use std::net::IpAddr;

use polypath_proto::wire::{Checksum, Chunk, CommonHeader, Data, GapBlock, IData, Packet as Sctp};
use polypath_proto::{Time, Tsn};

use super::packet::{Packet, PacketId};
use super::topology::{HostId, LinkId, NodeKind, Topology};
use crate::link::{DropReason, Verdict};

/// Packet trace of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PacketTrace {
    /// Names of the associations.
    pub associations: Vec<String>,
    /// Names of the links, one for each direction.
    pub links: Vec<String>,
    /// A row for each packet at each link, in the order of time.
    pub hops: Hops,
    /// A row for each packet, in the order in which they were sent.
    pub packets: Packets,
    /// A row for each chunk, in the order of packets and within them.
    pub chunks: Chunks,
}

/// A packet at a link. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hops {
    /// Time at which the packet was offered to the link, in seconds from the beginning of the run.
    pub time: Vec<f64>,
    /// The packet: its row in [`PacketTrace::packets`].
    pub packet: Vec<u32>,
    /// The link: its index in [`PacketTrace::links`].
    pub link: Vec<u32>,
    /// Fate of the packet: an index into [`FATES`].
    pub fate: Vec<u8>,
    /// Time at which it reached the far end, in seconds; NaN if it did not.
    pub arrival: Vec<f64>,
}

/// Fates of a packet at a link; [`Hops::fate`] is an index into this list. A packet that was still
/// under way when the run ended is "sent".
pub const FATES: [&str; 7] = ["sent", "delivered", "lost", "queue", "down", "mtu", "middlebox"];

const SENT: u8 = 0;
const DELIVERED: u8 = 1;
const DOWN: u8 = 4;

const fn fate_of(reason: DropReason) -> u8 {
    match reason {
        DropReason::Loss => 2,
        DropReason::Queue | DropReason::Early | DropReason::Policer => 3,
        DropReason::Down => DOWN,
        DropReason::Mtu => 5,
        DropReason::Middlebox => 6,
    }
}

/// A packet. All columns have the same length, except `first_chunk`, which has one more element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packets {
    /// The association: an index into [`PacketTrace::associations`].
    pub association: Vec<u32>,
    /// 0 for packets from the side that opened the association, 1 for packets to it.
    pub direction: Vec<u8>,
    /// Index of the accepting side's address that the packet is sent to or from.
    pub path: Vec<u8>,
    /// Bytes on the wire, IP header included.
    pub size: Vec<u32>,
    /// Row of the packet's first chunk in [`PacketTrace::chunks`]; the next packet's first chunk
    /// follows its last one.
    pub first_chunk: Vec<u32>,
}

/// A chunk. All columns of a chunk have the same length, except `first_gap` and `first_duplicate`,
/// which have one more element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunks {
    /// Chunk type (RFC 9260 3.2).
    pub kind: Vec<u8>,
    /// DATA: the TSN; SACK: the cumulative TSN ack; otherwise 0.
    pub tsn: Vec<u32>,
    /// DATA: whether the TSN was sent before.
    pub retransmission: Vec<bool>,
    /// SACK, INIT, INIT ACK: the window announced, in bytes; otherwise 0.
    pub a_rwnd: Vec<u32>,
    /// Row of the chunk's first gap ack block.
    pub first_gap: Vec<u32>,
    /// First TSN of each gap ack block.
    pub gap_first: Vec<u32>,
    /// Last TSN of each gap ack block.
    pub gap_last: Vec<u32>,
    /// Row of the chunk's first duplicate TSN.
    pub first_duplicate: Vec<u32>,
    /// Each duplicate TSN that a SACK reports.
    pub duplicate: Vec<u32>,
}

/// An association whose packets are traced.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(crate) name: String,
    /// The host that opens the association, and the one that accepts it.
    pub(crate) hosts: [HostId; 2],
    pub(crate) port: u16,
}

/// Builds the trace during a run.
#[derive(Debug)]
pub(crate) struct Tracer {
    trace: PacketTrace,
    associations: Vec<Traced>,
    /// TSNs sent by side 0 and by side 1 of each association.
    flows: Vec<[Flow; 2]>,
    /// Sorted addresses, with their host and their index among its addresses.
    addresses: Vec<(IpAddr, HostId, u8)>,
    /// For each buffer of the pool, the packet in it and the row of its current hop.
    under_way: Vec<Option<UnderWay>>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    packet: u32,
    hop: Option<usize>,
}

/// TSNs of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    initial: Option<Tsn>,
    /// The highest TSN sent, counted from 1.
    highest: u32,
}

impl Flow {
    /// The TSN as the trace records it: counted from 1.
    fn relative(self, tsn: Tsn) -> u32 {
        self.initial.map_or(tsn.0, |initial| tsn.offset_from(initial).wrapping_add(1))
    }
}

impl Tracer {
    pub(crate) fn new(topology: &Topology, associations: Vec<Traced>) -> Self {
        let mut counted = vec![0u8; topology.hosts.len()];
        let mut addresses = Vec::new();
        for kind in &topology.nodes {
            if let NodeKind::Interface { host, address } = *kind {
                let number = &mut counted[host.index()];
                addresses.push((address, host, *number));
                *number = number.saturating_add(1);
            }
        }
        addresses.sort_unstable();
        let trace = PacketTrace {
            associations: associations.iter().map(|one| one.name.clone()).collect(),
            links: topology.links.iter().map(|link| link.name.clone()).collect(),
            ..PacketTrace::default()
        };
        let flows = vec![[Flow::default(); 2]; associations.len()];
        Self { trace, associations, flows, addresses, under_way: Vec::new() }
    }

    /// A host sends a packet to another one, which has the address `to`.
    pub(crate) fn sent(&mut self, id: PacketId, packet: &Packet, to: IpAddr) {
        let place = self.place(id);
        *place = None;
        let Some((association, direction, path)) = self.belongs_to(packet, to) else { return };
        let Ok(sctp) = Sctp::parse(packet.bytes(), Checksum::Ignore) else { return };
        let packets = &mut self.trace.packets;
        let number = packets.size.len() as u32;
        packets.association.push(association as u32);
        packets.direction.push(direction as u8);
        packets.path.push(path);
        packets.size.push(packet.wire_size);
        packets.first_chunk.push(self.trace.chunks.kind.len() as u32);
        for chunk in sctp.chunks().flatten() {
            self.trace.chunks.push(&chunk, &mut self.flows[association], direction);
        }
        *self.place(id) = Some(UnderWay { packet: number, hop: None });
    }

    fn place(&mut self, id: PacketId) -> &mut Option<UnderWay> {
        let index = id.index();
        if index >= self.under_way.len() {
            self.under_way.resize(index + 1, None);
        }
        &mut self.under_way[index]
    }

    /// Association, direction and path of a packet.
    fn belongs_to(&self, packet: &Packet, to: IpAddr) -> Option<(usize, usize, u8)> {
        let header = CommonHeader::peek(packet.bytes())?;
        let (from, from_number) = self.owner(packet.source.ip())?;
        let (to, to_number) = self.owner(to)?;
        let direction = |one: &Traced| {
            let port = [header.source_port, header.destination_port].contains(&one.port);
            [[from, to], [to, from]].iter().position(|hosts| port && *hosts == one.hosts)
        };
        let mut associations = self.associations.iter().enumerate();
        let (index, direction) =
            associations.find_map(|(index, one)| Some((index, direction(one)?)))?;
        Some((index, direction, if direction == 0 { to_number } else { from_number }))
    }

    fn owner(&self, address: IpAddr) -> Option<(HostId, u8)> {
        let place = self.addresses.binary_search_by_key(&address, |&(known, ..)| known).ok()?;
        let (_, host, number) = self.addresses[place];
        Some((host, number))
    }

    /// A packet is offered to a link.
    pub(crate) fn offered(&mut self, now: Time, link: LinkId, id: PacketId, verdict: Verdict) {
        let hop = self.trace.hops.time.len();
        let Some(under_way) = self.place(id) else { return };
        under_way.hop = Some(hop);
        let packet = under_way.packet;
        let hops = &mut self.trace.hops;
        hops.time.push(now.as_secs_f64());
        hops.packet.push(packet);
        hops.link.push(link.0);
        hops.arrival.push(f64::NAN);
        hops.fate.push(match verdict {
            Verdict::Deliver { .. } | Verdict::Wait => SENT,
            Verdict::Drop(reason) => fate_of(reason),
        });
    }

    /// The link copied a packet that it delivers.
    pub(crate) fn copied(&mut self, from: PacketId, to: PacketId) {
        *self.place(to) = *self.place(from);
    }

    /// A packet has reached the end of a link, or was on the link when it broke.
    pub(crate) fn arrived(&mut self, now: Time, id: PacketId, delivered: bool) {
        let Some(hop) = self.place(id).and_then(|under_way| under_way.hop) else { return };
        let hops = &mut self.trace.hops;
        if delivered {
            hops.arrival[hop] = now.as_secs_f64();
        }
        hops.fate[hop] = if delivered { DELIVERED } else { DOWN };
    }

    /// A packet that waited for a link is dropped.
    pub(crate) fn dropped(&mut self, id: PacketId, reason: DropReason) {
        if let Some(hop) = self.place(id).and_then(|under_way| under_way.hop) {
            self.trace.hops.fate[hop] = fate_of(reason);
        }
    }

    pub(crate) fn finish(mut self) -> PacketTrace {
        let chunks = &mut self.trace.chunks;
        self.trace.packets.first_chunk.push(chunks.kind.len() as u32);
        chunks.first_gap.push(chunks.gap_first.len() as u32);
        chunks.first_duplicate.push(chunks.duplicate.len() as u32);
        self.trace
    }
}

impl Chunks {
    fn push(&mut self, chunk: &Chunk<'_>, flows: &mut [Flow; 2], direction: usize) {
        self.kind.push(chunk.ty());
        self.first_gap.push(self.gap_first.len() as u32);
        self.first_duplicate.push(self.duplicate.len() as u32);
        let (mut tsn, mut retransmission, mut a_rwnd) = (0, false, 0);
        match chunk {
            Chunk::Init(init) | Chunk::InitAck(init) => {
                flows[direction].initial = Some(init.initial_tsn);
                a_rwnd = init.a_rwnd;
            }
            Chunk::Data(Data { tsn: number, .. }) | Chunk::IData(IData { tsn: number, .. }) => {
                let flow = &mut flows[direction];
                tsn = flow.relative(*number);
                retransmission = tsn <= flow.highest;
                flow.highest = flow.highest.max(tsn);
            }
            Chunk::Sack(sack) | Chunk::NrSack(sack) => {
                let (sack, flow) = (sack.read_wide(), flows[1 - direction]);
                let cumulative = sack.cumulative_tsn_ack;
                tsn = flow.relative(cumulative);
                a_rwnd = sack.a_rwnd;
                let gaps = sack.all_gaps();
                self.gap_first
                    .extend(gaps.clone().map(|b: GapBlock| flow.relative(b.first(cumulative))));
                self.gap_last.extend(gaps.map(|b: GapBlock| flow.relative(b.last(cumulative))));
                self.duplicate.extend(sack.duplicates().map(|tsn| flow.relative(tsn)));
            }
            _ => {}
        }
        self.tsn.push(tsn);
        self.retransmission.push(retransmission);
        self.a_rwnd.push(a_rwnd);
    }
}

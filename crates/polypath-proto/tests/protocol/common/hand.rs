//! A peer whose packets are built by hand, so that it can send anything, including hostile packets.

use std::net::{IpAddr, SocketAddr};

use polypath_proto::wire::{
    Checksum, Chunk, CommonHeader, Data, GapBlock, InitFields, PacketWriter, ParameterWriter,
};
use polypath_proto::{Ppid, Remote, Ssn, StreamId, Tsn, VerificationTag};

use super::{Net, PORT, Sent, v4};

/// TSNs are counted as in the log: the first TSN of each side is 1.
#[derive(Clone, Debug)]
pub(crate) struct Hand {
    pub(crate) ip: IpAddr,
    pub(crate) port: u16,
    /// The hand's tag and first TSN.
    pub(crate) tag: u32,
    pub(crate) tsn: u32,
    /// The tag and first TSN of the endpoint under test.
    pub(crate) peer_tag: u32,
    pub(crate) peer_tsn: u32,
    pub(crate) host: usize,
    pub(crate) rwnd: u32,
    pub(crate) streams: (u16, u16),
    pub(crate) cookie: Vec<u8>,
}

pub(crate) const HAND: u8 = 99;

/// Writes chunks; panics if they do not fit.
pub(crate) type Chunks<'f> = &'f dyn Fn(&mut PacketWriter<'_>);

impl Hand {
    pub(crate) fn new(host: usize) -> Self {
        Self {
            ip: v4(0, usize::from(HAND) - 1),
            port: PORT,
            tag: 0x0bad_cafe,
            tsn: 0xffff_fff0,
            peer_tag: 0,
            peer_tsn: 0,
            host,
            rwnd: 1 << 20,
            streams: (64, 64),
            cookie: Vec::new(),
        }
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote { address: (self.ip, 0).into(), local: None }
    }

    pub(crate) fn fields(&self) -> InitFields {
        InitFields {
            initiate_tag: VerificationTag(self.tag),
            a_rwnd: self.rwnd,
            outbound_streams: self.streams.0,
            inbound_streams: self.streams.1,
            initial_tsn: Tsn(self.tsn),
        }
    }

    pub(crate) fn packet(&self, tag: u32, chunks: Chunks<'_>) -> Vec<u8> {
        let header = CommonHeader {
            source_port: self.port,
            destination_port: PORT,
            verification_tag: VerificationTag(tag),
        };
        let mut buf = vec![0; 65_536];
        let mut w = PacketWriter::new(&mut buf, header);
        chunks(&mut w);
        let len = w.finish(Checksum::Verify);
        buf.truncate(len);
        buf
    }

    /// Sends bytes from the hand at once; returns the packets sent back at once.
    pub(crate) fn raw(&self, net: &mut Net, bytes: &[u8]) -> Vec<Sent> {
        let mark = net.log.len();
        let to = SocketAddr::new(net.hosts[self.host].addresses[0], 0);
        net.inject((self.ip, 0).into(), to, bytes);
        self.answers(net, mark)
    }

    /// Packets sent to the hand since the log had `mark` entries.
    pub(crate) fn answers(&self, net: &Net, mark: usize) -> Vec<Sent> {
        net.log[mark..].iter().filter(|p| p.to.ip() == self.ip).cloned().collect()
    }

    pub(crate) fn say_with_tag(&self, net: &mut Net, tag: u32, chunks: Chunks<'_>) -> Vec<Sent> {
        let packet = self.packet(tag, chunks);
        self.raw(net, &packet)
    }

    /// Sends a packet with the right tag.
    pub(crate) fn say(&self, net: &mut Net, chunks: Chunks<'_>) -> Vec<Sent> {
        self.say_with_tag(net, self.peer_tag, chunks)
    }

    /// Sends an INIT; returns the answers.
    pub(crate) fn init(
        &self,
        net: &mut Net,
        parameters: &dyn Fn(&mut ParameterWriter<'_>),
    ) -> Vec<Sent> {
        self.say_with_tag(net, 0, &|w| {
            w.init(&self.fields(), |p| {
                parameters(p);
                Ok(())
            })
            .unwrap();
        })
    }

    /// Stores the tag, TSN and cookie of the host's INIT or INIT ACK.
    pub(crate) fn learn(&mut self, answer: &Sent) {
        for chunk in answer.parsed() {
            if let Chunk::Init(init) | Chunk::InitAck(init) = chunk {
                self.peer_tag = init.initiate_tag.0;
                self.peer_tsn = init.initial_tsn.0;
                for parameter in init.parameters.iter().flatten() {
                    if let polypath_proto::wire::Parameter::StateCookie(cookie) = parameter {
                        self.cookie = cookie.to_vec();
                    }
                }
            }
        }
    }

    pub(crate) fn echo(&self, net: &mut Net) -> Vec<Sent> {
        self.say(net, &|w| w.cookie_echo(&self.cookie).unwrap())
    }

    /// Opens an association with a host that listens.
    pub(crate) fn open(mut self, net: &mut Net) -> Self {
        let answers = self.init(net, &|_| {});
        assert!(answers[0].has("INIT ACK"), "{}", net.tail(3));
        self.learn(&answers[0]);
        let answers = self.echo(net);
        assert!(answers[0].has("COOKIE ACK"), "{}", net.tail(3));
        self
    }

    /// Makes the host open an association with the hand, up to its INIT.
    pub(crate) fn be_called(mut self, net: &mut Net) -> Self {
        let mark = net.log.len();
        let now = net.now;
        net.hosts[self.host].endpoint.connect(now, self.port, &[self.remote()]).unwrap();
        net.settle();
        self.learn(&self.answers(net, mark)[0]);
        self
    }

    pub(crate) fn init_ack(&self, net: &mut Net) -> Vec<Sent> {
        self.say(net, &|w| {
            w.init_ack(&self.fields(), |p| p.state_cookie(b"a cookie of ours")).unwrap();
        })
    }

    /// Makes the host open an association with the hand, and completes the handshake.
    pub(crate) fn accept(self, net: &mut Net) -> Self {
        let hand = self.be_called(net);
        assert!(hand.init_ack(net)[0].has("COOKIE ECHO"), "{}", net.tail(3));
        hand.say(net, &|w| w.cookie_ack().unwrap());
        assert!(net.a(hand.host).is_established());
        hand
    }

    /// The hand's `n`-th chunk: a whole ordered message on stream 0.
    pub(crate) fn chunk<'a>(&self, n: u32, payload: &'a [u8]) -> Data<'a> {
        Data {
            tsn: Tsn(self.tsn.wrapping_add(n).wrapping_sub(1)),
            stream: StreamId(0),
            ssn: Ssn(n.wrapping_sub(1) as u16),
            ppid: Ppid(0),
            unordered: false,
            beginning: true,
            end: true,
            immediate: false,
            retransmission: false,
            payload,
        }
    }

    pub(crate) fn data(&self, net: &mut Net, n: u32) -> Vec<Sent> {
        let chunk = self.chunk(n, b"data");
        self.say(net, &|w| w.data(&chunk).unwrap())
    }

    /// Sends a SACK for the host's data; returns the answers.
    pub(crate) fn sack(&self, net: &mut Net, cumulative: u32, gaps: &[(u16, u16)]) -> Vec<Sent> {
        self.sack_rwnd(net, cumulative, gaps, self.rwnd)
    }

    pub(crate) fn sack_rwnd(
        &self,
        net: &mut Net,
        cumulative: u32,
        gaps: &[(u16, u16)],
        rwnd: u32,
    ) -> Vec<Sent> {
        let cumulative = Tsn(self.peer_tsn.wrapping_add(cumulative).wrapping_sub(1));
        let gaps: Vec<GapBlock> = gaps
            .iter()
            .map(|&(start, end)| GapBlock { start: start.into(), end: end.into() })
            .collect();
        self.say(net, &|w| {
            w.sack(cumulative, rwnd, 0, gaps.iter().copied(), [].into_iter()).unwrap();
        })
    }

    /// Answers the HEARTBEATs among these packets.
    pub(crate) fn answer_heartbeats(&self, net: &mut Net, packets: &[Sent]) {
        for packet in packets.iter().filter(|p| p.to.ip() == self.ip) {
            for chunk in packet.parsed() {
                if let Chunk::Heartbeat(h) = chunk {
                    self.say(net, &|w| w.heartbeat_ack(h.info).unwrap());
                }
            }
        }
    }

    pub(crate) fn shutdown(&self, net: &mut Net, cumulative: u32) -> Vec<Sent> {
        let cumulative = Tsn(self.peer_tsn.wrapping_add(cumulative).wrapping_sub(1));
        self.say(net, &|w| w.shutdown(cumulative).unwrap())
    }
}

/// TSNs of the DATA chunks in these packets, one list for each packet with DATA.
pub(crate) fn data_numbers(packets: &[Sent]) -> Vec<Vec<u32>> {
    let numbers = packets.iter().map(|p| p.data().iter().map(|d| d.n).collect());
    numbers.filter(|n: &Vec<u32>| !n.is_empty()).collect()
}

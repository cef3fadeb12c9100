//! Packets for no association of the endpoint (RFC 9260 8.4).

use std::net::IpAddr;

use super::Endpoint;
use crate::reply;
use crate::transmit::FourTuple;
use crate::wire::{Cause, Chunk, CommonHeader, Packet};

impl Endpoint {
    /// A packet for no association of this endpoint (RFC 9260 8.4).
    pub(super) fn handle_out_of_the_blue(&mut self, from: FourTuple, packet: &Packet<'_>) {
        self.stats.out_of_the_blue += 1;
        let unicast = |ip: IpAddr| {
            let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
            !ip.is_multicast() && !ip.is_unspecified() && !broadcast
        };
        // (1)
        if !unicast(from.remote.ip()) || from.local.ip().is_multicast() {
            return;
        }
        let header = packet.header();
        let reply_header = CommonHeader {
            source_port: header.destination_port,
            destination_port: header.source_port,
            verification_tag: header.verification_tag,
        };
        // RFC 4895 6.3: the packet is processed as if it had no AUTH chunk.
        let first = packet.chunks().find(|chunk| !matches!(chunk, Ok(Chunk::Auth(_))));
        // RFC 9260 8.5.1 A: only an INIT has tag 0.
        if header.verification_tag.0 == 0 && !matches!(first, Some(Ok(Chunk::Init(_)))) {
            return;
        }
        // (2)
        if packet.chunks().any(|c| matches!(c, Ok(Chunk::Abort(_)))) {
            return;
        }
        let discarded = |c| match c {
            // (6)
            Ok(Chunk::ShutdownComplete(_)) => true,
            // (7)
            Ok(Chunk::CookieAck) => true,
            Ok(Chunk::Error(error)) => {
                error.causes.iter().any(|c| matches!(c, Ok(Cause::StaleCookie { .. })))
            }
            _ => false,
        };
        let packet = match first {
            // (3) for a port without an endpoint: no listener.
            Some(Ok(Chunk::Init(init))) if header.verification_tag.0 == 0 => {
                if init.initiate_tag.0 == 0 {
                    return;
                }
                let header = CommonHeader { verification_tag: init.initiate_tag, ..reply_header };
                reply::abort_packet(header, false, &self.shared, |_| Ok(()))
            }
            Some(Err(_)) | None => return,
            // (5)
            Some(Ok(_)) if packet.chunks().any(|c| c == Ok(Chunk::ShutdownAck)) => {
                reply::shutdown_complete_packet(reply_header, &self.shared)
            }
            Some(Ok(_)) if packet.chunks().any(discarded) => return,
            // (8), also for an INIT with a tag other than 0.
            Some(Ok(_)) => reply::abort_packet(reply_header, true, &self.shared, |_| Ok(())),
        };
        self.reply(from, packet);
    }
}

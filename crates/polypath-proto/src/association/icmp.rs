//! ICMP messages about packets that this association has sent (RFC 9260 10, RFC 6951 5.5).
//!
//! Any host can send an ICMP message. Only one that has seen the packet that it quotes knows the
//! verification tag, or the Initiate Tag of an INIT.

use std::net::IpAddr;

use super::Association;
use super::state::State;
use crate::event::CloseReason;
use crate::shared::{Encapsulation, Quoted, Unreachable};
use crate::time::Time;
use crate::transmit::FourTuple;

impl Association {
    /// The network could not deliver a packet to `from.remote`. `quoted` is the packet that the
    /// ICMP message quotes; `None` if this host itself reports it, or if the layer below has
    /// recognised the quoted packet.
    pub(crate) fn handle_unreachable(
        &mut self,
        now: Time,
        from: &FourTuple,
        what: Unreachable,
        quoted: Option<Quoted>,
    ) {
        // RFC 9260 10 (ICMP6), RFC 6951 5.5: "MUST be discarded silently".
        if quoted.is_some_and(|quoted| !self.has_sent(quoted)) {
            self.stats.dropped += 1;
            return;
        }
        let udp = matches!(self.shared.config.encapsulation, Encapsulation::Udp { .. });
        let words = match what {
            Unreachable::TooBig { mtu } => {
                return sender!(self).handle_too_big(now, from.remote.ip(), mtu);
            }
            // RFC 9260 10 (ICMP3): ignored. RFC 6951 5.5: over UDP it is a protocol unreachable.
            Unreachable::Port if !udp => return,
            Unreachable::Port => "nothing listens on that UDP port",
            Unreachable::Protocol => "the host does not speak SCTP",
            Unreachable::Host => "the host does not answer",
            Unreachable::Network => "there is no route to it",
        };
        match (&self.state, quoted) {
            (State::CookieWait(_), _) => self.refuse_init(now, from.remote.ip(), words),
            // RFC 9260 10 (ICMP8) treats "protocol unreachable" like an ABORT in these states too.
            // A host whose SCTP runs in user space reports it whenever the buffer of its raw socket
            // is full, although the association is alive: ignore it once the peer has answered. RFC
            // 6951 5.5 is a SHOULD: a firewall that rejects the packets of one path ends that path,
            // not the association.
            (_, Some(Quoted { init: None, .. })) if what == Unreachable::Port => {
                let left = sender!(self).leave_refused_path(from);
                if !left {
                    self.handle_reflected_abort(from, CloseReason::Unreachable { what: words });
                }
            }
            // RFC 9260 10 (ICMP9) allows counting an error. The network may recover before the
            // path's own timers expire, which count lost packets. A failover policy that moves data
            // away from silent paths does so now, and probes the path.
            _ => {
                if let Some(path) = self.paths.path_for(from) {
                    sender!(self).suspect_unreachable(now, path);
                }
            }
        }
    }

    /// RFC 9260 10 (ICMP6): the verification tag is the peer's, or it is 0 and the Initiate Tag is
    /// that of this side's INIT.
    fn has_sent(&self, quoted: Quoted) -> bool {
        let header = quoted.header;
        let ports = header.source_port == self.shared.config.port
            && header.destination_port == self.handshake.peer_port;
        ports
            && match header.verification_tag.0 {
                0 => quoted.init == Some(self.handshake.local_tag),
                _ => header.verification_tag == self.handshake.peer_tag,
            }
    }

    /// An INIT to `remote` cannot be delivered: tries the next address at once. If every address
    /// has been refused, RFC 9260 10 (ICMP8) applies: "handle the ICMP message like an ABORT
    /// chunk".
    fn refuse_init(&mut self, now: Time, remote: IpAddr, what: &'static str) {
        let State::CookieWait(wait) = &mut self.state else { return };
        let path = wait.path;
        if self.paths[path].remote().ip() != remote {
            return;
        }
        wait.t1 = now;
        if self.paths.refuse(path) {
            return self.become_closed(CloseReason::Unreachable { what });
        }
        self.handle_t1(now);
    }
}

//! Values of socket options.

use std::time::Duration;

use polypath::proto::ConfigBuilder;
use polypath::proto::policy::{Entry, StreamScheduler, stream_scheduler};
use polypath::{ChunkTypes, Config};

use crate::errno::Errno;

/// Values that the program has set. Those of associations apply from connect and listen on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// `sctp_initmsg`: outgoing streams, incoming streams, attempts, milliseconds.
    pub(crate) init: [u16; 4],
    /// `sctp_rtoinfo`: initial, maximum, minimum in milliseconds; 0 for the profile's.
    pub(crate) rto: [u32; 3],
    /// Association.Max.Retrans; 0 for the profile's.
    pub(crate) max_retrans: u16,
    /// Milliseconds; `None` for the profile's.
    pub(crate) heartbeat: Option<u32>,
    /// Whether HEARTBEATs are sent on idle paths.
    pub(crate) heartbeats: bool,
    /// Path.Max.Retrans; 0 for the profile's.
    pub(crate) path_max_retrans: u16,
    pub(crate) recvrcvinfo: bool,
    pub(crate) recvnxtinfo: bool,
    /// SCTP_AUTO_ASCONF.
    pub(crate) auto_asconf: bool,
    pub(crate) nodelay: bool,
    pub(crate) mapped: bool,
    pub(crate) only_v6: bool,
    /// PotentiallyFailed.Max.Retrans, and Primary.Switchover.Max.Retrans.
    pub(crate) failing: Option<u16>,
    pub(crate) change_primary: Option<u16>,
    /// Valid.Cookie.Life in milliseconds; 0 for the profile's.
    pub(crate) cookie_life: u32,
    /// SACK.Delay in milliseconds, and the number of packets; 0 for the profile's.
    pub(crate) sack_delay: Option<u32>,
    pub(crate) sack_every: u32,
    /// 0 for the profile's.
    pub(crate) max_burst: u32,
    /// Path MTU in bytes; 0 for the profile's.
    pub(crate) mtu: u16,
    pub(crate) discovery: Option<bool>,
    pub(crate) adaptation: Option<u32>,
    pub(crate) partial_reliability: bool,
    pub(crate) interleaving: Option<bool>,
    pub(crate) reconfiguration: Option<bool>,
    pub(crate) authentication: Option<bool>,
    pub(crate) auth_chunks: ChunkTypes,
    pub(crate) asconf: Option<bool>,
    pub(crate) ecn: Option<bool>,
    /// Number of SCTP_STREAM_SCHEDULER.
    pub(crate) scheduler: Option<u32>,
    pub(crate) no_fragments: bool,
    /// SCTP_FRAGMENT_INTERLEAVE.
    pub(crate) interleave: u32,
    pub(crate) reuse_port: bool,
    pub(crate) reuse_address: bool,
    /// SO_REUSEPORT.
    pub(crate) shares_port: bool,
    /// SO_RCVBUF and SO_SNDBUF as the program has set them.
    pub(crate) receive_buffer: Option<i32>,
    pub(crate) send_buffer: Option<i32>,
    /// SO_LINGER: on, and seconds.
    pub(crate) linger: (bool, i32),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // Linux's defaults.
            init: [10, 2048, 8, 60_000],
            rto: [0; 3],
            max_retrans: 0,
            heartbeat: None,
            heartbeats: true,
            path_max_retrans: 0,
            recvrcvinfo: false,
            recvnxtinfo: false,
            auto_asconf: false,
            nodelay: false,
            mapped: true,
            only_v6: false,
            failing: None,
            change_primary: None,
            cookie_life: 0,
            sack_delay: None,
            sack_every: 0,
            max_burst: 0,
            mtu: 0,
            discovery: None,
            adaptation: None,
            partial_reliability: true,
            interleaving: None,
            reconfiguration: None,
            authentication: None,
            auth_chunks: ChunkTypes::NONE,
            asconf: None,
            ecn: None,
            scheduler: None,
            no_fragments: false,
            interleave: 0,
            reuse_port: false,
            reuse_address: false,
            shares_port: false,
            receive_buffer: None,
            send_buffer: None,
            linger: (false, 0),
        }
    }
}

impl Options {
    /// Sets the values of `sctp_initmsg` that are not 0 (RFC 6458 8.1.3).
    pub(crate) fn change_init(&mut self, new: [u16; 4]) {
        for (kept, new) in self.init.iter_mut().zip(new) {
            *kept = if new == 0 { *kept } else { new };
        }
    }

    /// The receive window that SO_RCVBUF asks for, within the limits of the configuration. Linux
    /// has the same minimum.
    pub(crate) fn window(&self) -> Option<u32> {
        self.receive_buffer.map(|size| size.max(0).cast_unsigned().clamp(1500, 1 << 30))
    }

    /// The configuration of new associations.
    pub(crate) fn config(&self, profile: &Config) -> Errno<Config> {
        let mut builder = profile
            .to_builder()
            .partial_reliability(self.partial_reliability)
            .outbound_streams(self.init[0].max(1))
            .inbound_streams(self.init[1].max(1));
        if self.init[2] != 0 {
            builder = builder.max_init_retransmits(self.init[2].into());
        }
        let (initial, min, max) =
            rto_limits(self.rto, (profile.rto_initial(), profile.rto_min(), profile.rto_max()));
        if self.rto != [0; 3] {
            builder = builder.rto_initial(initial).rto_min(min).rto_max(max);
        }
        if self.max_retrans != 0 {
            builder = builder.association_max_retrans(self.max_retrans.into());
        }
        if self.path_max_retrans != 0 {
            builder = builder.path_max_retrans(self.path_max_retrans.into());
        }
        let ms = |ms: u32| Duration::from_millis(ms.into());
        if let Some(interval) = self.heartbeat {
            builder = builder.heartbeat_interval(Some(ms(interval)));
        }
        if !self.heartbeats {
            builder = builder.heartbeat_interval(None);
        }
        if let Some(failing) = self.failing {
            builder = builder.potentially_failed_max_retrans(failing.into());
        }
        if let Some(errors) = self.change_primary {
            builder = builder.change_primary_threshold(Some(errors.into()));
        }
        if self.cookie_life != 0 {
            builder = builder.cookie_life(ms(self.cookie_life));
        }
        if let Some(delay) = self.sack_delay {
            builder = builder.sack_delay(ms(delay));
        }
        if self.sack_every != 0 {
            builder = builder.sack_every(self.sack_every);
        }
        if self.max_burst != 0 {
            builder = builder.max_burst(self.max_burst);
        }
        if let Some(size) = self.window() {
            builder = builder.receive_buffer(size).initial_receive_buffer(None);
        }
        if self.mtu != 0 {
            builder = builder.path_mtu(self.mtu);
        }
        self.extensions(builder).build().map_err(|_| libc::EINVAL)
    }

    /// Sets what is negotiated with the peer.
    fn extensions(&self, mut builder: ConfigBuilder) -> ConfigBuilder {
        if let Some(on) = self.discovery {
            builder = builder.path_mtu_discovery(on);
        }
        if self.adaptation.is_some() {
            builder = builder.adaptation_layer(self.adaptation);
        }
        if let Some(on) = self.interleaving {
            builder = builder.interleaving(on);
        }
        if let Some(on) = self.reconfiguration {
            builder = builder.stream_reconfiguration(on);
        }
        if let Some(on) = self.authentication {
            builder = builder.authentication(on);
        }
        if !self.auth_chunks.is_empty() {
            builder = builder.authenticated_chunks(self.auth_chunks);
        }
        if let Some(on) = self.asconf {
            builder = builder.dynamic_addresses(on);
        }
        if let Some(on) = self.ecn {
            builder = builder.ecn(on);
        }
        if let Some(entry) = self.scheduler.and_then(scheduler) {
            builder = builder.stream_scheduler(entry);
        }
        builder
    }
}

/// RTO.Initial, RTO.Min and RTO.Max with the values of `sctp_rtoinfo` (initial, maximum, minimum in
/// milliseconds) that are not 0. Linux lets the initial RTO be outside of the limits, but uses none
/// such.
pub(crate) fn rto_limits(
    new: [u32; 3],
    (initial, min, max): (Duration, Duration, Duration),
) -> (Duration, Duration, Duration) {
    let pick = |ms: u32, old| if ms == 0 { old } else { Duration::from_millis(ms.into()) };
    let [initial, max, min] = [pick(new[0], initial), pick(new[1], max), pick(new[2], min)];
    (initial.min(max).max(min), min, max)
}

/// The scheduler with this number of Linux (`enum sctp_sched_type`).
pub(crate) fn scheduler(number: u32) -> Option<&'static Entry<dyn StreamScheduler>> {
    Some(match number {
        0 => &stream_scheduler::FIRST_COME,
        1 => &stream_scheduler::PRIORITY,
        2 => &stream_scheduler::ROUND_ROBIN,
        3 => &stream_scheduler::FAIR_CAPACITY,
        4 => &stream_scheduler::WEIGHTED_FAIR_QUEUEING,
        _ => return None,
    })
}

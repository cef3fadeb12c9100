//! Values of socket options.

use std::time::Duration;

use polypath::Config;

use crate::errno::Errno;
use crate::frame::{Header, Kind};

/// Values that the program has set. Those of associations apply from connect and listen on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// `sctp_initmsg`: outgoing streams, incoming streams, attempts, milliseconds.
    pub(crate) init: [u16; 4],
    /// `sctp_rtoinfo`: initial, maximum, minimum in milliseconds; 0 for the profile's.
    pub(crate) rto: [u32; 3],
    /// Association.Max.Retrans; 0 for the profile's.
    pub(crate) max_retrans: u16,
    /// Milliseconds; 0 for the profile's.
    pub(crate) heartbeat: u32,
    /// Path.Max.Retrans; 0 for the profile's.
    pub(crate) path_max_retrans: u16,
    /// SCTP_DEFAULT_SEND_PARAM and SCTP_DEFAULT_SNDINFO.
    pub(crate) send: Header,
    pub(crate) recvrcvinfo: bool,
    pub(crate) context: u32,
    pub(crate) nodelay: bool,
    pub(crate) mapped: bool,
    pub(crate) only_v6: bool,
    pub(crate) reuse_address: bool,
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
            heartbeat: 0,
            path_max_retrans: 0,
            send: Header::new(Kind::Data),
            recvrcvinfo: false,
            context: 0,
            nodelay: false,
            mapped: true,
            only_v6: false,
            reuse_address: false,
            linger: (false, 0),
        }
    }
}

impl Options {
    /// The configuration of new associations.
    pub(crate) fn config(&self, profile: &Config) -> Errno<Config> {
        let mut builder = profile
            .to_builder()
            .partial_reliability(true)
            .outbound_streams(self.init[0].max(1))
            .inbound_streams(self.init[1].max(1));
        if self.init[2] != 0 {
            builder = builder.max_init_retransmits(self.init[2].into());
        }
        let [initial, max, min] = self.rto.map(|ms| Duration::from_millis(ms.into()));
        if !initial.is_zero() {
            builder = builder.rto_initial(initial);
        }
        if !max.is_zero() {
            builder = builder.rto_max(max);
        }
        if !min.is_zero() {
            builder = builder.rto_min(min);
        }
        if self.max_retrans != 0 {
            builder = builder.association_max_retrans(self.max_retrans.into());
        }
        if self.path_max_retrans != 0 {
            builder = builder.path_max_retrans(self.path_max_retrans.into());
        }
        if self.heartbeat != 0 {
            let interval = Duration::from_millis(self.heartbeat.into());
            builder = builder.heartbeat_interval(Some(interval));
        }
        builder.build().map_err(|_| libc::EINVAL)
    }
}

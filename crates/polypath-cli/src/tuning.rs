//! Profiles, constants and policies by name:
//! `--profile NAME --config KEY=VALUE --policy SEAM=NAME`.

use std::fmt::Display;

use polypath::Config;
use polypath::proto::policy::{
    ack, congestion, cwnd_update, failover, find, loss, probing, retransmission, rtt_sampling,
    scheduler, stream_scheduler,
};
use polypath::proto::{ConfigBuilder, PROFILES, Procedures};

use crate::failure::Failure;

/// Options that set the behavior of associations.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Tuning {
    /// Named set of constants and policies to start from; `polypath profiles` lists them
    #[arg(long, value_name = "NAME", default_value = "rfc9260", help_heading = "Protocol")]
    profile: String,
    /// Send over all paths at the same time (concurrent multipath transfer): short for --profile
    /// cmt. The peer should use it too, so that its acknowledgements fit
    #[arg(long, conflicts_with = "profile", help_heading = "Protocol")]
    cmt: bool,
    /// Like --cmt, but send no data to a path that has timed out until it responds again: short for
    /// --profile cmt-pf
    #[arg(long, conflicts_with_all = ["profile", "cmt"], help_heading = "Protocol")]
    cmt_pf: bool,
    /// Constant of the protocol, such as rto_min=200ms or path_max_retrans=2; may be repeated.
    /// `polypath profiles` lists them
    #[arg(short, long, value_name = "KEY=VALUE", help_heading = "Protocol")]
    config: Vec<String>,
    /// Policy for an extension point, such as retransmission=same; may be repeated.
    /// `polypath policies` lists them
    #[arg(long, value_name = "SEAM=NAME", help_heading = "Protocol")]
    policy: Vec<String>,
}

/// The names and summaries of an extension point's policies.
type Answers = Vec<(&'static str, &'static str)>;

/// Parses a value and sets it in the builder; the error lists the allowed values.
type Set = fn(ConfigBuilder, &str) -> Result<ConfigBuilder, String>;
/// Formats a value as [`Set`] parses it.
type Get = fn(&Config) -> String;

macro_rules! constants {
    ($($name:ident $kind:ident $summary:literal),* $(,)?) => {
        /// Constants that can be set: name, setter, getter, summary.
        const CONSTANTS: &[(&str, Set, Get, &str)] = &[$(
            (
                stringify!($name),
                |builder, text| Ok(builder.$name($kind::read(text)?)),
                |config| $kind::show(config.$name()),
                $summary,
            ),
        )*];
    };
}

constants! {
    rto_initial duration "retransmission timeout before the first RTT sample",
    rto_min duration "lower bound of the retransmission timeout",
    rto_max duration "upper bound of the retransmission timeout",
    max_burst number "packets that one event may add to what is in flight on a path",
    burst_rule choice "when it holds: ack-clocked, flight-size, after-retransmission or packet-count",
    new_data_waits switch "new data waits while anything is to be sent again",
    procedures choice "whose reading of the RFC: rfc9260 or ns2",
    path_confirmation choice "data waits for the paths: alongside-data, before-data or off",
    cookie_life duration "how long a state cookie is accepted",
    association_max_retrans number "errors in a row that end the association",
    path_max_retrans number "errors in a row that make a path inactive",
    potentially_failed_max_retrans number "errors in a row that make a path potentially failed",
    potentially_failed_cwnd number "packets that a path may send whose probe was answered (CMT-PF)",
    change_primary_threshold optional_number "errors of the primary that make a failover permanent; off: never",
    max_init_retransmits number "attempts of INIT and COOKIE ECHO after the first",
    heartbeat_interval optional_duration "added to the RTO between heartbeats on an idle path; off: none",
    hb_max_burst number "unconfirmed addresses that are probed at a time",
    sack_delay duration "longest wait before data is acknowledged",
    sack_every number "a SACK at the latest after so many packets with DATA",
    srtt_heuristic switch "T3-rtx leaves alone what was sent within the last round-trip time",
    tie_seed optional_number "ties between paths as ns-2 decides them from this seed; off: by chance",
    first_sack_at_once switch "the first DATA chunk is acknowledged at once",
    fast_retransmit_reports number "missing reports that make a chunk lost",
    partial_reliability switch "messages may be given up, where an application asks for it and the peer agrees",
    interleaving switch "a long message does not hold up other streams, where the peer agrees",
    nr_sack switch "offer acknowledgements that the sender may forget by: what has arrived is kept",
    buffer_splitting choice "buffers split between the paths: off, send, receive or both",
    receive_buffer bytes "receive buffer",
    send_buffer bytes "send buffer",
    max_message_size bytes "largest message accepted for sending",
    outbound_streams number "outgoing streams asked for",
    inbound_streams number "incoming streams allowed",
    initial_ssthresh optional_bytes "slow start threshold at the beginning; off: the peer's window",
    initial_cwnd number "congestion window at the beginning, in packets; 0: the RFC's formula",
    cwnd_floor number "least ssthresh after a loss and least cwnd of an idle path, in packets",
    path_mtu bytes "largest IP packet of a path",
    max_paths number "most paths of an association",
    authentication switch "offer authenticated chunks (RFC 4895)",
    authenticated_chunks choice "taken only if authenticated: such as data,cookie-echo; none",
    dynamic_addresses switch "offer that addresses come and go (RFC 5061); needs authentication",
    unauthenticated_addresses switch "let them come and go unauthenticated with a peer that has no authentication",
    adaptation_layer optional_number "told to the peer: what stands above, a number (RFC 5061 4.2.6); off: nothing",
    stream_reconfiguration switch "offer to reset and add streams (RFC 6525)",
    path_mtu_discovery switch "look for each path's largest packet, up to path_mtu (RFC 8899)",
    ecn switch "offer explicit congestion notification (RFC 3168)",
    full_mesh switch "pair every local with every remote address",
}

macro_rules! seams {
    ($($seam:ident $what:literal),* $(,)?) => {
        /// The extension points: name, the decision to make, its policies.
        pub(crate) fn seams() -> Vec<(&'static str, &'static str, Answers)> {
            vec![$((
                stringify!($seam),
                $what,
                $seam::ANSWERS.iter().map(|answer| (answer.name, answer.summary)).collect(),
            )),*]
        }

        fn set_policy(
            builder: ConfigBuilder,
            seam: &str,
            name: &str,
        ) -> Result<ConfigBuilder, Failure> {
            match seam {
                $(stringify!($seam) => match find($seam::ANSWERS, name) {
                    Some(answer) => Ok(builder.$seam(answer)),
                    None => Err(unknown(
                        concat!("answer to ", stringify!($seam)),
                        name,
                        $seam::ANSWERS.iter().map(|answer| answer.name),
                    )),
                },)*
                _ => Err(unknown("policy", seam, [$(stringify!($seam)),*])),
            }
        }

        /// Names of a configuration's policies, in the order of [`seams()`].
        pub(crate) fn answers(config: &Config) -> Vec<&'static str> {
            vec![$(config.$seam().name),*]
        }
    };
}

seams! {
    retransmission "where does a retransmission go?",
    loss "when is a chunk lost?",
    congestion "how does a window grow and shrink?",
    cwnd_update "when may an acknowledgement make a window grow?",
    scheduler "which path takes new data?",
    failover "when is a path given up, and taken back?",
    ack "when is an acknowledgement sent, and where?",
    rtt_sampling "what is a sample of the round-trip time?",
    stream_scheduler "which stream's message leaves next?",
    probing "when is a path probed?",
}

impl Tuning {
    fn profile(&self) -> &str {
        match (self.cmt, self.cmt_pf) {
            (true, _) => "cmt",
            (_, true) => "cmt-pf",
            _ => &self.profile,
        }
    }

    /// The configuration that the options select.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let profile = Config::profile(self.profile()).ok_or_else(|| {
            unknown("profile", self.profile(), PROFILES.iter().map(|profile| profile.name))
        })?;
        let mut builder = profile.to_builder();
        // By default, transfers survive a change of the host's network. Setting any of these keys
        // disables that default for all of them.
        let own = ["authentication", "dynamic_addresses", "procedures"];
        if profile.procedures() == Procedures::Rfc9260
            && !self
                .config
                .iter()
                .any(|setting| own.iter().any(|key| setting.trim().starts_with(key)))
        {
            builder = builder.authentication(true).dynamic_addresses(true);
        }
        for setting in &self.config {
            let (key, value) = pair(setting, "--config", "KEY=VALUE")?;
            let Some((_, set, ..)) = CONSTANTS.iter().find(|(name, ..)| *name == key) else {
                return Err(unknown("constant", key, CONSTANTS.iter().map(|(name, ..)| *name)));
            };
            builder = set(builder, value).map_err(|allowed| {
                Failure::usage(format!("{key} cannot be {value:?}: it has to be {allowed}"))
            })?;
        }
        for setting in &self.policy {
            let (seam, name) = pair(setting, "--policy", "SEAM=NAME")?;
            builder = set_policy(builder, seam, name)?;
        }
        builder.build().map_err(|error| Failure::usage(error.to_string()))
    }
}

/// All constants of a configuration: name, value, summary.
pub(crate) fn constants(config: &Config) -> Vec<(&'static str, String, &'static str)> {
    CONSTANTS.iter().map(|(name, _, get, summary)| (*name, get(config), *summary)).collect()
}

fn pair<'a>(text: &'a str, option: &str, form: &str) -> Result<(&'a str, &'a str), Failure> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| Failure::usage(format!("{option} {text:?} is not of the form {form}")))?;
    Ok((key.trim(), value.trim()))
}

fn unknown(what: &str, name: &str, allowed: impl IntoIterator<Item = impl Display>) -> Failure {
    let allowed: Vec<String> = allowed.into_iter().map(|name| name.to_string()).collect();
    Failure::usage(format!("there is no {what} {name:?}"))
        .hint(format!("allowed: {}", allowed.join(", ")))
}

mod duration {
    use std::time::Duration;

    use polypath_sim::units::Span;

    pub(super) fn read(text: &str) -> Result<Duration, String> {
        let span: Result<Span, _> = text.parse();
        span.map(Span::duration).map_err(|_| "a time, such as 200ms or 1.5s".to_owned())
    }

    pub(super) fn show(duration: Duration) -> String {
        Span::from(duration).to_string().replace(' ', "")
    }
}

mod choice {
    pub(super) fn read<T: std::str::FromStr<Err = String>>(text: &str) -> Result<T, String> {
        text.parse()
    }

    pub(super) fn show(value: impl std::fmt::Display) -> String {
        value.to_string()
    }
}

mod optional_duration {
    use std::time::Duration;

    use super::{duration, or_off};

    pub(super) fn read(text: &str) -> Result<Option<Duration>, String> {
        or_off(text, duration::read)
    }

    pub(super) fn show(value: Option<Duration>) -> String {
        value.map_or_else(|| "off".to_owned(), duration::show)
    }
}

mod number {
    pub(super) fn read<T: TryFrom<u64> + Most>(text: &str) -> Result<T, String> {
        let number = text.parse().ok().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("a whole number up to {}", T::MOST))
    }

    pub(super) fn show(value: impl std::fmt::Display) -> String {
        value.to_string()
    }

    /// Maximum value of an integer type.
    pub(super) trait Most {
        const MOST: u64;
    }
    impl Most for u8 {
        const MOST: u64 = Self::MAX as u64;
    }
    impl Most for u16 {
        const MOST: u64 = Self::MAX as u64;
    }
    impl Most for u32 {
        const MOST: u64 = Self::MAX as u64;
    }
}

mod bytes {
    use polypath_sim::units::Size;

    use super::number::Most;

    /// Parses bytes, with or without a unit.
    pub(super) fn read<T: TryFrom<u64> + Most>(text: &str) -> Result<T, String> {
        let size = text.parse().ok().or_else(|| text.parse().ok().map(|Size(bytes)| bytes));
        let size = size.and_then(|bytes: u64| T::try_from(bytes).ok());
        size.ok_or_else(|| format!("bytes, such as 65536 or 64KiB, up to {}", T::MOST))
    }

    pub(super) fn show(value: impl std::fmt::Display) -> String {
        value.to_string()
    }
}

mod optional_bytes {
    use super::{bytes, or_off};

    pub(super) fn read(text: &str) -> Result<Option<u32>, String> {
        or_off(text, bytes::read)
    }

    pub(super) fn show(value: Option<u32>) -> String {
        value.map_or_else(|| "off".to_owned(), bytes::show)
    }
}

mod optional_number {
    use super::{number, or_off};

    pub(super) fn read(text: &str) -> Result<Option<u32>, String> {
        or_off(text, number::read)
    }

    pub(super) fn show(value: Option<u32>) -> String {
        value.map_or_else(|| "off".to_owned(), number::show)
    }
}

mod switch {
    pub(super) fn read(text: &str) -> Result<bool, String> {
        text.parse().map_err(|_| "true or false".to_owned())
    }

    pub(super) fn show(value: bool) -> String {
        value.to_string()
    }
}

/// Parses "off" as `None`.
fn or_off<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text == "off" {
        return Ok(None);
    }
    read(text).map(Some).map_err(|allowed| format!("{allowed}, or off"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn tuning(config: &[&str], policy: &[&str]) -> Result<Config, Failure> {
        let own = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        let profile = "rfc9260".into();
        Tuning { profile, cmt: false, cmt_pf: false, config: own(config), policy: own(policy) }
            .config()
    }

    #[test]
    fn constants_are_set_by_name() {
        let config = tuning(
            &[
                "rto_min=200ms",
                "rto_initial=0.5 s",
                "receive_buffer=64KiB",
                "heartbeat_interval=off",
                "full_mesh=true",
                "max_paths=4",
            ],
            &["retransmission=same"],
        )
        .unwrap();
        assert_eq!(config.rto_min(), Duration::from_millis(200));
        assert_eq!(config.rto_initial(), Duration::from_millis(500));
        assert_eq!(config.receive_buffer(), 65_536);
        assert_eq!(config.heartbeat_interval(), None);
        assert!(config.full_mesh());
        assert_eq!(config.max_paths(), 4);
        assert_eq!(config.retransmission().name, "same");
    }

    #[test]
    fn what_is_shown_can_be_read() {
        let config = Config::rfc9260();
        for (name, set, get, _) in CONSTANTS {
            let builder = set(config.to_builder(), &get(&config)).unwrap();
            assert_eq!(get(&builder.build().unwrap()), get(&config), "{name}");
        }
    }

    #[test]
    fn wrong_values_name_what_is_allowed() {
        let text =
            |config: &[&str], policy: &[&str]| tuning(config, policy).unwrap_err().to_string();
        let wrong = text(&["rto_min=fast"], &[]);
        assert_eq!(
            wrong,
            "polypath: rto_min cannot be \"fast\": it has to be a time, such as 200ms or 1.5s"
        );
        assert!(text(&["max_paths=300"], &[]).contains("a whole number up to 255"));
        assert!(text(&["rto=1s"], &[]).contains("hint: allowed: rto_initial, rto_min"));
        assert!(text(&["rto_min"], &[]).contains("KEY=VALUE"));
        assert!(text(&[], &["retransmission=x"]).contains("allowed: "));
        assert!(text(&[], &["x=y"]).contains("allowed: retransmission, loss"));
        assert!(text(&["rto_min=0s"], &[]).contains("from 1 ns to 1 h"));
        let refused = text(&[], &["retransmission=same", "probing=after-rto"]);
        assert!(refused.contains("probing is after-rto, but must be idle"), "{refused}");
    }
}

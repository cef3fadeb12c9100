//! The parameters of INIT and INIT ACK, for both roles (RFC 9260 3.3.2, 3.3.3, 5.1.2).

use std::net::{IpAddr, SocketAddr};

use crate::auth::{AuthKeys, AuthOffer, AuthPieces};
use crate::config::Config;
use crate::cookie::StateCookie;
use crate::extension::{Extension, Extensions};
use crate::ids::{Tsn, VerificationTag};
use crate::scope::Scope;
use crate::shared::{EndpointConfig, Shared};
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{
    CommonHeader, DoesNotFit, Init, InitFields, PacketWriter, Parameter, ParameterError,
    ParameterWriter,
};

/// Limit on the recorded addresses of a peer, apart from the source of its packet; `max_paths` if
/// that is larger. A COOKIE ECHO with all of them still fits a packet.
const MOST_ADDRESSES: usize = 32;

/// The parameters of an INIT or INIT ACK.
#[derive(Debug, Default)]
pub(crate) struct PeerParameters {
    /// Usable addresses in the peer's order, including the source.
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether the peer has listed any address.
    pub(crate) lists_addresses: bool,
    pub(crate) cookie: Option<Vec<u8>>,
    /// Parameters to report as unrecognized (RFC 9260 3.2.2): complete, padded, concatenated.
    pub(crate) unrecognized: Vec<u8>,
    /// Requested extension of the cookie's life, in milliseconds.
    pub(crate) preservative: u32,
    /// Extensions that the peer offers.
    pub(crate) offered: Extensions,
    /// The peer's authentication parameters.
    pub(crate) authentication: Option<AuthOffer>,
    /// The peer's Adaptation Layer Indication.
    pub(crate) adaptation_layer: Option<u32>,
}

/// Why an INIT or INIT ACK is answered with an ABORT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InitError {
    /// RFC 9260 3.3.2: zero streams, no Initiate Tag, or a parameter with a wrong length.
    InvalidMandatoryParameter,
    /// RFC 9260 3.3.2.1.4: host names are rejected.
    HostName(Vec<u8>),
    /// RFC 9260 3.3.3: the state cookie is missing.
    MissingCookie,
    /// RFC 9260 3.3.2: a_rwnd below 1500 bytes.
    SmallWindow,
    /// RFC 4895 6.1: a Random parameter that is not 32 bytes long.
    RandomLength,
    /// RFC 5061 6: ASCONF is offered without AUTH.
    AsconfWithoutAuth,
}

impl InitError {
    /// The error cause of the ABORT.
    pub(crate) fn write(&self, c: &mut crate::wire::CauseWriter<'_>) -> Result<(), DoesNotFit> {
        match self {
            Self::InvalidMandatoryParameter => c.invalid_mandatory_parameter(),
            Self::HostName(raw) => c.unresolvable_address(raw),
            Self::MissingCookie => {
                c.missing_mandatory_parameter(&[crate::wire::parameter_type::STATE_COOKIE])
            }
            Self::SmallWindow => c.protocol_violation(b"a_rwnd below 1500 bytes"),
            Self::RandomLength => c.protocol_violation(b"Random is not 32 bytes long"),
            Self::AsconfWithoutAuth => c.protocol_violation(b"ASCONF without AUTH"),
        }
    }

    pub(crate) const fn words(&self) -> &'static str {
        match self {
            Self::InvalidMandatoryParameter => "an INIT or INIT ACK with an invalid field",
            Self::HostName(_) => "an INIT or INIT ACK with a host name",
            Self::MissingCookie => "an INIT ACK without a state cookie",
            Self::SmallWindow => "an INIT or INIT ACK with a window below 1500 bytes",
            Self::RandomLength => "an INIT or INIT ACK with a Random parameter of the wrong length",
            Self::AsconfWithoutAuth => "an INIT or INIT ACK that offers ASCONF without AUTH",
        }
    }
}

/// Maximum number of the host's addresses to list ([`EndpointConfig::announced`]).
const MOST_LISTED: usize = 16;

/// Checks the fixed fields and reads the parameters. `source`, the source address of the packet, is
/// one of the peer's addresses, listed or not (RFC 9260 5.1.2 A to C).
pub(crate) fn read(
    init: &Init<'_>,
    source: IpAddr,
    config: &Config,
    ack: bool,
) -> Result<PeerParameters, InitError> {
    // RFC 9260 3.3.2: "If the value of the Initiate Tag is found to be 0", "number of streams of
    // 0".
    if init.initiate_tag.0 == 0 || init.outbound_streams == 0 || init.inbound_streams == 0 {
        return Err(InitError::InvalidMandatoryParameter);
    }
    if init.a_rwnd < 1500 {
        return Err(InitError::SmallWindow);
    }
    let mut p = PeerParameters::default();
    let mut auth = AuthPieces::default();
    for parameter in init.parameters.iter() {
        match parameter {
            Ok(Parameter::Ipv4(ip)) => p.add(ip.into(), source),
            Ok(Parameter::Ipv6(ip)) => p.add(ip.into(), source),
            Ok(Parameter::StateCookie(cookie)) => p.cookie = Some(cookie.to_vec()),
            Ok(Parameter::CookiePreservative(ms)) => p.preservative = ms,
            Ok(Parameter::AdaptationLayer(indication)) => p.adaptation_layer = Some(indication),
            Ok(Parameter::HostName(raw)) => return Err(InitError::HostName(raw.to_vec())),
            Ok(Parameter::Unknown { ty, raw }) => {
                let action = crate::wire::Action::of_parameter(ty);
                if action.reports() {
                    p.report(raw);
                }
                if action.stops() {
                    break;
                }
            }
            Err(ParameterError::Length) => return Err(InitError::InvalidMandatoryParameter),
            // An offer, or a parameter that is ignored.
            Ok(parameter) => {
                p.offered.learn(&parameter);
                if config.authentication() {
                    auth.learn(&parameter);
                }
                // RFC 3758 3.3.2: an endpoint that does not use the extension reports it as
                // unrecognized.
                if parameter == Parameter::ForwardTsnSupported && !config.partial_reliability() {
                    p.report(&[0xc0, 0, 0, 4]);
                }
            }
            // A known type with a wrong length.
            Err(_) => {}
        }
    }
    if auth.is_wrong() {
        return Err(InitError::RandomLength);
    }
    p.authentication = auth.offer();
    if p.authentication.is_some() {
        p.offered.insert(Extension::Authentication);
    }
    if ack && p.cookie.is_none() {
        return Err(InitError::MissingCookie);
    }
    // RFC 5061 6: an INIT "that indicates that the peer supports the ASCONF extension but does NOT
    // support the [RFC4895] extension" is answered with an ABORT; an INIT ACK opens no association.
    let insists = config.dynamic_addresses() && !config.unauthenticated_addresses();
    if insists && p.offered.contains(Extension::DynamicAddresses) && p.authentication.is_none() {
        return Err(InitError::AsconfWithoutAuth);
    }
    // RFC 9260 5.1.2 C: addresses without a path are recorded too.
    p.lists_addresses = !p.addresses.is_empty();
    p.addresses.truncate(MOST_ADDRESSES.max(config.max_paths().into()));
    if !p.addresses.contains(&source) {
        p.addresses.insert(0, source);
    }
    Ok(p)
}

impl PeerParameters {
    /// Without what the peer offers, if the own INIT is `plain`, that is if it offers nothing.
    pub(crate) fn for_plain(mut self, plain: bool) -> Self {
        if plain {
            self.offered = Extensions::default();
            self.authentication = None;
        }
        self
    }

    /// Extensions that both sides offer.
    pub(crate) fn agreed(&self, config: &Config, shared: &Shared) -> Extensions {
        let mut agreed = offered(config, &shared.config).agreed(self.offered);
        // RFC 5061 4.1: ASCONF must be authenticated.
        if !agreed.contains(Extension::Authentication) && !config.unauthenticated_addresses() {
            agreed.remove(Extension::DynamicAddresses);
        }
        agreed
    }

    fn report(&mut self, raw: &[u8]) {
        if self.unrecognized.len() < 512 {
            self.unrecognized.extend(raw);
            self.unrecognized.resize(self.unrecognized.len().next_multiple_of(4), 0);
        }
    }

    fn add(&mut self, ip: IpAddr, source: IpAddr) {
        // `read` applies the configured limit; this one bounds the work before.
        if can_pair(ip, source) && !self.addresses.contains(&ip) && self.addresses.len() < 64 {
            self.addresses.push(ip);
        }
    }
}

/// Whether one side of an association can use the address `ip` if the other side uses `other`.
pub(crate) fn can_pair(ip: IpAddr, other: IpAddr) -> bool {
    let unusable = ip.is_unspecified()
        || ip.is_multicast()
        || matches!(ip, IpAddr::V4(ip) if ip.is_broadcast())
        // RFC 9260 5.1.2, notes on scope: a loopback address is valid only on its own host.
        || (ip.is_loopback() && !other.is_loopback());
    !unusable
}

/// The local addresses that may be announced to a peer at `destination`.
pub(crate) fn usable(shared: &Shared, destination: IpAddr) -> impl Iterator<Item = &IpAddr> {
    let (announced, widest) = (shared.config.announced.as_ref(), Scope::of(destination));
    // A program on this host needs no other address, unless loopback addresses are announced, too.
    let alone = destination.is_loopback()
        && announced.is_some_and(|list| !list.iter().any(IpAddr::is_loopback));
    let most = announced.map_or(usize::MAX, |_| if alone { 0 } else { MOST_LISTED });
    let addresses = announced.unwrap_or(&shared.config.addresses).iter();
    let in_scope = move |ip: &&IpAddr| announced.is_none() || Scope::of(**ip) <= widest;
    addresses.filter(move |ip| can_pair(**ip, destination)).filter(in_scope).take(most)
}

/// The addresses to list: none if there is only one (RFC 9260 5.1.2 A).
pub(crate) fn listed(shared: &Shared, destination: IpAddr) -> impl Iterator<Item = &IpAddr> {
    let several = usable(shared, destination).nth(1).is_some();
    usable(shared, destination).filter(move |_| several)
}

/// The extensions that an endpoint with this configuration offers.
pub(crate) fn offered(config: &Config, endpoint: &EndpointConfig) -> Extensions {
    let mut all = Extensions::default();
    let needs = [config.rtt_sampling().needs, config.ack().needs];
    needs.into_iter().filter_map(|needs| needs.extension).for_each(|e| all.insert(e));
    for (on, extension) in [
        (config.stream_reconfiguration(), Extension::StreamReconfiguration),
        // Others count missing reports, which such SACKs would give for chunks that have arrived.
        (config.loss().make(&config.setup()).watches_time(), Extension::PartialSacks),
        (config.loss().make(&config.setup()).watches_time(), Extension::WideSacks),
        (config.ecn(), Extension::Ecn),
        (endpoint.zero_checksum, Extension::ZeroChecksum),
        (config.partial_reliability(), Extension::PartialReliability),
        (config.interleaving(), Extension::Interleaving),
        (config.interleaving() && config.partial_reliability(), Extension::InterleavedForwardTsn),
        (config.nr_sack(), Extension::NrSack),
        (config.authentication(), Extension::Authentication),
        (config.dynamic_addresses(), Extension::DynamicAddresses),
    ] {
        if on {
            all.insert(extension);
        }
    }
    all
}

/// Whether an INIT may leave out all extensions.
///
/// Who drops INITs with extensions can thereby switch extensions off. Not those that protect an
/// association: chunks that have to be authenticated, and keys that both sides share (RFC 4895).
/// That address changes are authenticated does not matter, for without extensions there are none.
/// Nor is it of use over DTLS, where no middlebox sees an INIT.
pub(crate) fn may_be_plain(config: &Config, endpoint: &EndpointConfig, keys: &AuthKeys) -> bool {
    let authenticates = config.authentication()
        && (!config.authenticated_chunks().is_empty() || keys.hold_secrets());
    let offers = !offered(config, endpoint).is_empty()
        || config.authentication()
        || config.adaptation_layer().is_some();
    config.plain_init() && offers && !authenticates && !endpoint.zero_checksum
}

/// Writes the local addresses for an INIT or INIT ACK.
pub(crate) fn write_addresses(
    p: &mut ParameterWriter<'_>,
    shared: &Shared,
    destination: IpAddr,
) -> Result<(), DoesNotFit> {
    listed(shared, destination).try_for_each(|ip| p.address(*ip))
}

/// Writes the Adaptation Layer Indication, if one is configured (RFC 5061 4.2.6).
pub(crate) fn write_adaptation_layer(
    p: &mut ParameterWriter<'_>,
    config: &Config,
) -> Result<(), DoesNotFit> {
    config.adaptation_layer().map_or(Ok(()), |indication| p.adaptation_layer(indication))
}

/// Writes the supported address types (RFC 9260 3.3.2.1.5), only in an INIT that lists addresses.
/// The parameter is optional, and pion, which has one address, does not answer an INIT that
/// contains it.
pub(crate) fn write_supported_types(
    p: &mut ParameterWriter<'_>,
    shared: &Shared,
    destination: IpAddr,
) -> Result<(), DoesNotFit> {
    if listed(shared, destination).next().is_none() {
        return Ok(());
    }
    let v4 = shared.config.addresses.iter().any(|ip| ip.to_canonical().is_ipv4());
    let v6 = shared.config.addresses.iter().any(|ip| ip.to_canonical().is_ipv6());
    match (v4, v6) {
        (true, true) => p.supported_address_types(&[5, 6]),
        (true, false) => p.supported_address_types(&[5]),
        (false, _) => p.supported_address_types(&[6]),
    }
}

/// An INIT ACK and the data of its cookie.
#[derive(Debug)]
pub(crate) struct InitAck<'a> {
    pub(crate) init: &'a Init<'a>,
    pub(crate) parameters: &'a PeerParameters,
    pub(crate) peer_port: u16,
    pub(crate) four_tuple: FourTuple,
    pub(crate) local_tag: VerificationTag,
    pub(crate) local_initial_tsn: Tsn,
    /// Tags of the existing association (RFC 9260 5.2.2); 0 if there is none.
    pub(crate) ties: (VerificationTag, VerificationTag),
}

impl InitAck<'_> {
    /// The complete packet.
    pub(crate) fn packet(&self, now: Time, shared: &Shared, config: &Config) -> Vec<u8> {
        let increment = std::time::Duration::from_millis(self.parameters.preservative.into());
        let cookie = StateCookie {
            created: now,
            life: StateCookie::life(config, increment),
            local_tag: self.local_tag,
            peer_tag: self.init.initiate_tag,
            local_tie: self.ties.0,
            peer_tie: self.ties.1,
            local_initial_tsn: self.local_initial_tsn,
            peer_initial_tsn: self.init.initial_tsn,
            peer_rwnd: self.init.a_rwnd,
            // RFC 9260 5.1.1: the lesser of the requested and the allowed number.
            outbound_streams: config.outbound_streams().min(self.init.inbound_streams),
            inbound_streams: config.inbound_streams().min(self.init.outbound_streams),
            peer_port: self.peer_port,
            local: self.four_tuple.local.ip(),
            remote: SocketAddr::new(self.four_tuple.remote.ip(), self.four_tuple.remote.port()),
            addresses: self.parameters.addresses.clone(),
            extensions: self.parameters.agreed(config, shared),
            authentication: self.parameters.authentication.clone(),
            adaptation_layer: self.parameters.adaptation_layer,
        };
        let fields = InitFields {
            initiate_tag: self.local_tag,
            a_rwnd: config.constants().first_receive_buffer(),
            outbound_streams: config.outbound_streams().min(self.init.inbound_streams),
            inbound_streams: config.inbound_streams(),
            initial_tsn: self.local_initial_tsn,
        };
        let header = CommonHeader {
            source_port: shared.config.port,
            destination_port: self.peer_port,
            verification_tag: self.init.initiate_tag,
        };
        let signed = cookie.sign(&shared.secret);
        let mut buf = vec![0; 4096];
        let mut w = PacketWriter::new(&mut buf, header);
        let written = w.init_ack(&fields, |p| {
            p.state_cookie(&signed)?;
            write_addresses(p, shared, self.four_tuple.remote.ip())?;
            cookie.extensions.write(p)?;
            write_adaptation_layer(p, config)?;
            if cookie.authentication.is_some() {
                let (demands, secret) = (config.demanded_chunks(), &shared.secret);
                AuthOffer::ours(demands, secret, self.local_tag, self.local_initial_tsn)
                    .write(p)?;
            }
            for raw in crate::wire::Parameters::new(&self.parameters.unrecognized).iter() {
                match raw {
                    Ok(Parameter::Unknown { raw, .. }) => p.unrecognized_parameter(raw)?,
                    Ok(Parameter::ForwardTsnSupported) => {
                        p.unrecognized_parameter(&[0xc0, 0, 0, 4])?;
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        debug_assert!(written.is_ok(), "a local INIT ACK always fits 4096 bytes");
        let len = w.finish(shared.config.checksum);
        buf.truncate(len);
        buf
    }
}

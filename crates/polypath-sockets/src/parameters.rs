//! Socket options with the parameters of associations: those of the next associations, or of a
//! present one as far as the core can change it.

use std::time::Duration;

use polypath::{Config, Thresholds};

use crate::bytes::{Reader, Writer};
use crate::errno::Errno;
use crate::link::{Phase, lock};
use crate::lookup::path;
use crate::socket::Sock;
use crate::values::{Options, rto_limits};
use crate::{abi, address, report};

/// Flags of `spp_flags`.
const HB_ENABLE: u32 = 1;
const HB_DISABLE: u32 = 2;
const HB_DEMAND: u32 = 4;
const PMTUD_ENABLE: u32 = 8;
const PMTUD_DISABLE: u32 = 0x10;
const SACKDELAY_ENABLE: u32 = 0x20;
const SACKDELAY_DISABLE: u32 = 0x40;
const HB_TIME_IS_ZERO: u32 = 0x80;

/// The configuration in use.
pub(crate) fn config(options: &Options) -> Errno<Config> {
    let engine = crate::engine::engine()?;
    options.config(&engine.settings.config)
}

pub(crate) fn ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Whether an option with this id concerns a present association.
pub(crate) fn is_present(sock: &Sock, id: i32) -> Errno<bool> {
    match &sock.many {
        None => Ok(matches!(sock.link.phase(), Phase::Connected | Phase::Connecting)),
        // SCTP_FUTURE_ASSOC.
        Some(_) if id == 0 => Ok(false),
        Some(_) => sock.member(id).map(|_| true),
    }
}

/// Refuses a change of a present association.
fn refuse<T>(name: i32) -> Errno<T> {
    report::missed(format!("setsockopt {} of an association", abi::name(name)));
    Err(libc::EOPNOTSUPP)
}

pub(crate) fn get(sock: &Sock, name: i32, options: &Options, request: &[u8]) -> Errno<Vec<u8>> {
    // Options of a plain integer have no id.
    let id = if request.len() < 8 { 0 } else { Reader(request).i32(0) };
    let link = if is_present(sock, id)? && sock.is_local() { sock.member(id).ok() } else { None };
    let config = match link.and_then(|link| link.association()) {
        Some(association) => association.config(),
        None => config(options)?,
    };
    let mut writer = Writer::default();
    writer.i32(id);
    match name {
        abi::RTOINFO => {
            writer.u32(ms(config.rto_initial()));
            writer.u32(ms(config.rto_max())).u32(ms(config.rto_min()));
        }
        abi::ASSOCINFO => {
            let association = if is_present(sock, id)? { sock.association(id).ok() } else { None };
            let peers = association.as_ref().map_or(0, |association| association.paths().len());
            let window = association.map_or(0, |association| association.peer_rwnd());
            writer.u16(config.association_max_retrans() as u16).u16(peers as u16).u32(window);
            // The lifetime of the next cookie.
            let life = match options.cookie_life {
                0 => ms(config.cookie_life()),
                set => set,
            };
            writer.u32(config.receive_buffer()).u32(life);
        }
        abi::DELAYED_SACK => {
            let delayed = config.sack_every() > 1;
            writer.u32(if delayed { ms(config.sack_delay()) } else { 0 });
            if request.len() != 8 {
                writer.u32(config.sack_every());
            }
        }
        abi::MAX_BURST => {
            writer.u32(config.max_burst());
        }
        abi::PEER_ADDR_THLDS | abi::PEER_ADDR_THLDS_V2 => {
            // The structure is not packed.
            let bytes = request.get(8..136).ok_or(libc::EINVAL)?;
            let thresholds = match is_present(sock, id)? {
                true => path(&sock.association(id)?, bytes)?.view.thresholds,
                false => config.thresholds(),
            };
            writer.u32(0).raw(bytes).u16(thresholds.path_max_retrans as u16);
            writer.u16(thresholds.potentially_failed_max_retrans as u16);
            let change = thresholds.change_primary.unwrap_or_else(|| u16::MAX.into()) as u16;
            writer.u16(if name == abi::PEER_ADDR_THLDS { 0 } else { change }).u16(0);
        }
        _ => {
            let name =
                request.get(4..132).map_or_else(|| vec![0; address::STORAGE], <[u8]>::to_vec);
            let found = match is_present(sock, id)? {
                true => Some(path(&sock.association(id)?, &name)?),
                false => None,
            };
            let (retrans, mtu) = match &found {
                Some(path) => (path.view.thresholds.path_max_retrans, path.mtu.mtu),
                None => (config.path_max_retrans(), config.path_mtu().into()),
            };
            let interval = config.heartbeat_interval();
            let mut flags = if interval.is_some() { HB_ENABLE } else { HB_DISABLE };
            flags |= if config.path_mtu_discovery() { PMTUD_ENABLE } else { PMTUD_DISABLE };
            let delayed = !config.sack_delay().is_zero() && config.sack_every() > 1;
            flags |= if delayed { SACKDELAY_ENABLE } else { SACKDELAY_DISABLE };
            writer.raw(&name).u32(interval.map_or(0, ms)).u16(retrans as u16).u32(mtu);
            writer.u32(ms(config.sack_delay())).u32(flags).u32(0).u8(0).u8(0);
            if (152..156).contains(&request.len()) {
                // Before Linux 4.19: without the flow label and the DSCP.
                return Ok(writer.done()[..152].to_vec());
            }
        }
    }
    Ok(writer.done())
}

pub(crate) fn set(sock: &Sock, name: i32, value: &[u8]) -> Errno<()> {
    let reader = Reader(value);
    let id = reader.i32(0);
    let present = is_present(sock, id)?;
    match name {
        abi::RTOINFO | abi::DELAYED_SACK | abi::MAX_BURST if present => {
            let association = sock.association(id)?;
            let config = association.config();
            match name {
                abi::RTOINFO => {
                    let (initial, min, max) = new_limits(reader, &config)?;
                    association.set_rto_limits(initial, min, max)
                }
                abi::DELAYED_SACK => {
                    let (delay, every) = sack_delay(value)?;
                    let delay = match delay {
                        0 => config.sack_delay(),
                        delay => Duration::from_millis(delay.into()),
                    };
                    let every = if every == 0 { config.sack_every() } else { every };
                    association.set_sack_delay(delay, every)
                }
                _ => match reader.u32(if value.len() < 8 { 0 } else { 4 }) {
                    // No limit.
                    0 => association.set_max_burst(u32::MAX),
                    burst => association.set_max_burst(burst),
                },
            }
            .map_err(|_| libc::EINVAL)
        }
        abi::RTOINFO => {
            let new = [reader.u32(4), reader.u32(8), reader.u32(12)];
            let before = *lock(&sock.options);
            new_limits(reader, &config(&before)?)?;
            let mut options = lock(&sock.options);
            for (kept, new) in options.rto.iter_mut().zip(new) {
                *kept = if new == 0 { *kept } else { new };
            }
            Ok(())
        }
        abi::ASSOCINFO => {
            let (retrans, life) = (reader.u16(4), reader.u32(16));
            let mut options = lock(&sock.options);
            if life != 0 {
                options.cookie_life = life;
            }
            if retrans != 0 && !present {
                options.max_retrans = retrans;
            }
            drop(options);
            if retrans != 0 && present {
                sock.association(id)?.set_association_max_retrans(retrans.into());
            }
            Ok(())
        }
        abi::DELAYED_SACK => {
            let (delay, every) = sack_delay(value)?;
            let mut options = lock(&sock.options);
            options.sack_delay = if delay == 0 { options.sack_delay } else { Some(delay) };
            options.sack_every = if every == 0 { options.sack_every } else { every };
            Ok(())
        }
        abi::MAX_BURST => {
            let burst = reader.u32(if value.len() < 8 { 0 } else { 4 });
            lock(&sock.options).max_burst = burst;
            Ok(())
        }
        abi::PEER_ADDR_THLDS | abi::PEER_ADDR_THLDS_V2 => thresholds(sock, name, value, present),
        _ => peer_addr_params(sock, value, present),
    }
}

/// RTO.Initial, RTO.Min and RTO.Max after SCTP_RTOINFO is set.
fn new_limits(reader: Reader<'_>, config: &Config) -> Errno<(Duration, Duration, Duration)> {
    let new = [reader.u32(4), reader.u32(8), reader.u32(12)];
    let old = (config.rto_initial(), config.rto_min(), config.rto_max());
    let (initial, min, max) = rto_limits(new, old);
    if min > max { Err(libc::EINVAL) } else { Ok((initial, min, max)) }
}

/// Milliseconds and packets of SCTP_DELAYED_SACK; 0 leaves a value as it is.
fn sack_delay(value: &[u8]) -> Errno<(u32, u32)> {
    let reader = Reader(value);
    let (delay, every) = match value.len() {
        // `sctp_assoc_value`: 0 acknowledges every packet.
        ..12 => (reader.u32(4), if reader.u32(4) == 0 { 1 } else { 0 }),
        _ => (reader.u32(4), reader.u32(8)),
    };
    if delay > 500 { Err(libc::EINVAL) } else { Ok((delay, every)) }
}

/// SCTP_PEER_ADDR_THLDS (RFC 7829 7.2).
fn thresholds(sock: &Sock, name: i32, value: &[u8], present: bool) -> Errno<()> {
    let reader = Reader(value);
    let never = |number: u16| (number != u16::MAX).then_some(number);
    let change = (name == abi::PEER_ADDR_THLDS_V2).then(|| never(reader.u16(140)));
    let (max, failing) = (reader.u16(136), reader.u16(138));
    if !present {
        let mut options = lock(&sock.options);
        if max != 0 {
            options.path_max_retrans = max;
        }
        options.failing = Some(failing);
        options.change_primary = change.flatten().or(options.change_primary);
        return Ok(());
    }
    let association = sock.association(reader.i32(0))?;
    let any = address::parse(&value[8..136]).map_or(true, |peer| peer.ip().is_unspecified());
    let found = path(&association, &value[8..136])?.view;
    let new = Thresholds {
        path_max_retrans: if max == 0 { found.thresholds.path_max_retrans } else { max.into() },
        potentially_failed_max_retrans: failing.into(),
        change_primary: change.map_or(found.thresholds.change_primary, |it| it.map(u32::from)),
    };
    association.set_thresholds((!any).then_some(found.id), new).map_err(|_| libc::EINVAL)
}

fn peer_addr_params(sock: &Sock, value: &[u8], present: bool) -> Errno<()> {
    let reader = Reader(value);
    let (interval, retrans) = (reader.u32(132), reader.u16(136));
    let (mtu, delay, flags) = (reader.u32(138), reader.u32(142), reader.u32(146));
    let both = |one: u32, other: u32| flags & one != 0 && flags & other != 0;
    if both(HB_ENABLE, HB_DISABLE)
        || both(PMTUD_ENABLE, PMTUD_DISABLE)
        || both(SACKDELAY_ENABLE, SACKDELAY_DISABLE)
        || delay > 500
        || (1..512).contains(&mtu)
    {
        return Err(libc::EINVAL);
    }
    if present {
        let association = sock.association(reader.i32(0))?;
        let any = address::parse(&value[4..132]).map_or(true, |peer| peer.ip().is_unspecified());
        let found = path(&association, &value[4..])?.view;
        let config = association.config();
        let discovers = config.path_mtu_discovery();
        // The core cannot begin or end the search for the path MTU.
        let changes_search = flags & if discovers { PMTUD_DISABLE } else { PMTUD_ENABLE } != 0;
        let same = [0, path(&association, &value[4..])?.mtu.mtu, config.path_mtu().into()];
        if changes_search || (flags & PMTUD_DISABLE != 0 && !same.contains(&mtu)) {
            return refuse(abi::PEER_ADDR_PARAMS);
        }
        // The interval and the delay are those of all paths.
        if flags & (HB_ENABLE | HB_DISABLE) != 0 {
            let interval = match interval {
                _ if flags & HB_DISABLE != 0 => None,
                _ if flags & HB_TIME_IS_ZERO != 0 => Some(Duration::ZERO),
                0 => config.heartbeat_interval().or_else(|| {
                    let default = Options { heartbeats: true, ..*lock(&sock.options) };
                    self::config(&default).ok().and_then(|config| config.heartbeat_interval())
                }),
                ms => Some(Duration::from_millis(ms.into())),
            };
            association.set_heartbeat_interval(interval).map_err(|_| libc::EINVAL)?;
        }
        if flags & (SACKDELAY_ENABLE | SACKDELAY_DISABLE) != 0 {
            let enables = flags & SACKDELAY_ENABLE != 0;
            let every = if enables { config.sack_every().max(2) } else { 1 };
            let delay = match delay {
                0 => config.sack_delay(),
                delay => Duration::from_millis(delay.into()),
            };
            association.set_sack_delay(delay, every).map_err(|_| libc::EINVAL)?;
        }
        if retrans != 0 {
            let new = Thresholds { path_max_retrans: retrans.into(), ..found.thresholds };
            let path = (!any).then_some(found.id);
            association.set_thresholds(path, new).map_err(|_| libc::EINVAL)?;
        }
        if flags & HB_DEMAND != 0 {
            association.request_heartbeat(found.id).map_err(|_| libc::EINVAL)?;
        }
        return Ok(());
    }
    if flags & HB_DEMAND != 0 {
        return Err(libc::EINVAL);
    }
    let mut options = lock(&sock.options);
    if retrans != 0 {
        options.path_max_retrans = retrans;
    }
    // Without the flag, Linux ignores the value next to it.
    if flags & HB_ENABLE != 0 && flags & HB_TIME_IS_ZERO != 0 {
        options.heartbeat = Some(0);
    } else if flags & HB_ENABLE != 0 && interval != 0 {
        options.heartbeat = Some(interval);
    }
    if flags & (HB_ENABLE | HB_DISABLE) != 0 {
        options.heartbeats = flags & HB_ENABLE != 0;
    }
    if flags & (PMTUD_ENABLE | PMTUD_DISABLE) != 0 {
        options.discovery = Some(flags & PMTUD_ENABLE != 0);
    }
    if mtu != 0 && flags & PMTUD_DISABLE != 0 {
        options.mtu = u16::try_from(mtu).map_err(|_| libc::EINVAL)?;
    }
    if flags & SACKDELAY_DISABLE != 0 {
        options.sack_delay = Some(0);
    } else if flags & SACKDELAY_ENABLE != 0 && delay != 0 {
        options.sack_delay = Some(delay);
    }
    Ok(())
}

//! `--metered`: interfaces and local addresses that cost money.

use std::net::IpAddr;

use polypath::Preference;
use polypath::proto::quantity::SIZE;

use crate::failure::{Failure, system_text};

/// An interface or a local address, and the bytes that it may send although others work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metered {
    what: String,
    budget: u64,
}

impl Metered {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (what, budget) = match text.split_once('=') {
            Some((what, amount)) => {
                let bytes = SIZE.read(amount);
                (what, bytes.ok_or_else(|| format!("expected {}", SIZE.notation))?)
            }
            None => (text, 0),
        };
        match what.trim() {
            "" => Err("expected an interface, such as wlan0 or wlan0=500MB".to_owned()),
            what => Ok(Self { what: what.to_owned(), budget }),
        }
    }
}

/// The preferences of the local addresses meant.
pub(crate) fn preferences(metered: &[Metered]) -> Result<Vec<(IpAddr, Preference)>, Failure> {
    let mut all = Vec::new();
    for Metered { what, budget } in metered {
        let addresses = match what.parse() {
            Ok(address) => vec![address],
            Err(_) => polypath::interface_addresses(what).map_err(|error| {
                Failure::new(format!("cannot read the host's addresses: {}", system_text(&error)))
            })?,
        };
        if addresses.is_empty() {
            return Err(Failure::new(format!("--metered: no interface {what:?} with an address"))
                .hint("ip address lists them"));
        }
        all.extend(addresses.into_iter().map(|ip| (ip, Preference::metered(*budget))));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_addresses_and_amounts() {
        let read = |text| Metered::read(text).unwrap();
        assert_eq!(read("wlan0"), Metered { what: "wlan0".to_owned(), budget: 0 });
        assert_eq!(read("wlan0=5MB").budget, 5_000_000);
        assert!(Metered::read("=5MB").is_err() && Metered::read("wlan0=much").is_err());
        let found = preferences(&[read("192.0.2.1=1kB"), read("2001:db8::1")]).unwrap();
        let expected = [("192.0.2.1", 1000), ("2001:db8::1", 0)]
            .map(|(ip, budget)| (ip.parse::<IpAddr>().unwrap(), Preference::metered(budget)));
        assert_eq!(found, expected);
        let none = preferences(&[read("none0")]).unwrap_err().to_string();
        assert!(none.contains("no interface \"none0\" with an address"), "{none}");
    }
}

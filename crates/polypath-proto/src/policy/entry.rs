//! A policy as an entry of a registry: name, summary, parameters and requirements; and a chosen
//! policy, with the values of its parameters.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use crate::constants::Constants;
use crate::extension::Extension;
use crate::kind::{Kind, Value};
use crate::suggest::closest;

/// A policy for one decision, as a [`Registry`](crate::Registry) lists it.
///
/// ```
/// use polypath_proto::policy::Entry;
/// use polypath_proto::policy::scheduler::{PRIMARY, Scheduler};
///
/// static MINE: Entry<dyn Scheduler> =
///     Entry::new("mine", "all data to the primary path", |setup| PRIMARY.make(setup));
/// assert_eq!(MINE.name, "mine");
/// ```
pub struct Entry<T: ?Sized> {
    /// Its name on the command line and in scenario files.
    pub name: &'static str,
    /// What it does and its source (RFC or paper, and section), in one line.
    pub summary: &'static str,
    /// Its own parameters.
    pub parameters: &'static [Setting],
    /// What it needs.
    pub needs: Needs,
    /// Makes the policy for an association.
    make: fn(&Setup<'_>) -> Box<T>,
}

impl<T: ?Sized> Entry<T> {
    /// An entry without parameters and requirements.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        make: fn(&Setup<'_>) -> Box<T>,
    ) -> Self {
        Self { name, summary, parameters: &[], needs: Needs::NONE, make }
    }

    /// The entry with these parameters.
    #[must_use]
    pub const fn with_parameters(mut self, parameters: &'static [Setting]) -> Self {
        self.parameters = parameters;
        self
    }

    /// The entry with these requirements.
    #[must_use]
    pub const fn with_needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }
}

impl<T: ?Sized + 'static> Entry<T> {
    /// Makes the policy for an association, with the defaults of its parameters.
    pub fn make(&'static self, setup: &Setup<'_>) -> Box<T> {
        Policy::from(self).make(setup)
    }
}

/// A sender's own version of a policy, under the same name and with the same parameters.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// The entry of the registry.
    of: &'static (dyn Any + Send + Sync),
    /// The entry that makes the policy instead.
    by: &'static (dyn Any + Send + Sync),
}

impl Replacement {
    /// `by` makes the policy instead of `of`.
    #[allow(dead_code, reason = "the sender of RFC 9260 has no versions of its own")]
    pub(crate) const fn new<T: ?Sized + 'static>(
        of: &'static Entry<T>,
        by: &'static Entry<T>,
    ) -> Self {
        Self { of, by }
    }

    /// The entry that makes the policy of `entry`.
    fn find<T: ?Sized + 'static>(all: &[Self], entry: &'static Entry<T>) -> &'static Entry<T> {
        let replaces = |one: &&Self| {
            one.of.downcast_ref::<Entry<T>>().is_some_and(|of| std::ptr::eq(of, entry))
        };
        all.iter().find(replaces).and_then(|one| one.by.downcast_ref()).unwrap_or(entry)
    }
}

/// The name identifies an entry.
impl<T: ?Sized> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl<T: ?Sized> fmt::Debug for Entry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The entry of this name in a list such as [`Registry::loss`](crate::Registry::loss).
pub fn find<T: ?Sized>(entries: &[&'static Entry<T>], name: &str) -> Option<&'static Entry<T>> {
    entries.iter().copied().find(|entry| entry.name == name)
}

/// What a policy needs from the association or from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// The extension that both sides must have negotiated; otherwise the policy of the profile
    /// `rfc9260` takes its place.
    pub extension: Option<Extension>,
    /// Of a scheduler: new data is sent on several paths at a time (CMT). A chunk that waits for
    /// retransmission then blocks only its own path, and each loss allows one packet on the path of
    /// the loss (Iyengar 2004, II and V.B).
    pub concurrency: bool,
    /// [`delivery_rate`](super::PathView::delivery_rate) and [`clear`](super::PathView::clear) of
    /// the paths.
    pub delivery_rate: bool,
    /// [`pair_bandwidth`](super::PathView::pair_bandwidth) of the paths: HEARTBEATs are sent in
    /// pairs of full packets from time to time, the first when the path is confirmed.
    pub pair_bandwidth: bool,
    /// Of a congestion controller:
    /// [`on_sent`](super::CongestionController::on_sent) is called.
    pub sending: bool,
    /// Of a congestion controller: delivery rate samples with each SACK and loss. A controller that
    /// has them bounds the data in flight in recovery by itself, without proportional rate
    /// reduction (RFC 6937).
    pub delivery_samples: bool,
    /// Of a congestion controller: [`wake_at`](super::CongestionController::wake_at) is called.
    pub wakes: bool,
    /// Of a congestion controller: [`Window::pacing_rate`](super::Window::pacing_rate) is applied.
    pub pacing: bool,
    /// Of a failover policy: [`patience`](super::FailoverPolicy::patience) is called.
    pub silence: bool,
}

impl Needs {
    /// Nothing.
    pub const NONE: Self = Self {
        extension: None,
        concurrency: false,
        delivery_rate: false,
        pair_bandwidth: false,
        sending: false,
        delivery_samples: false,
        wakes: false,
        pacing: false,
        silence: false,
    };

    /// The extension that both sides must have negotiated.
    #[must_use]
    pub const fn extension(mut self, extension: Extension) -> Self {
        self.extension = Some(extension);
        self
    }

    /// New data on several paths at a time.
    #[must_use]
    pub const fn concurrency(mut self) -> Self {
        self.concurrency = true;
        self
    }

    /// The delivery rates of the paths.
    #[must_use]
    pub const fn delivery_rate(mut self) -> Self {
        self.delivery_rate = true;
        self
    }

    /// The bandwidth of the paths by pairs of HEARTBEATs.
    #[must_use]
    pub const fn pair_bandwidth(mut self) -> Self {
        self.pair_bandwidth = true;
        self
    }

    /// Reports of what is sent.
    #[must_use]
    pub const fn sending(mut self) -> Self {
        self.sending = true;
        self
    }

    /// Delivery rate samples.
    #[must_use]
    pub const fn delivery_samples(mut self) -> Self {
        self.delivery_samples = true;
        self
    }

    /// To be woken.
    #[must_use]
    pub const fn wakes(mut self) -> Self {
        self.wakes = true;
        self
    }

    /// Pacing.
    #[must_use]
    pub const fn pacing(mut self) -> Self {
        self.pacing = true;
        self
    }

    /// To watch for paths that do not answer.
    #[must_use]
    pub const fn silence(mut self) -> Self {
        self.silence = true;
        self
    }

    /// Whether a congestion controller needs more than acknowledgements and losses.
    pub const fn beyond_acknowledgements(self) -> bool {
        self.sending || self.delivery_samples || self.wakes || self.pacing
    }
}

/// A parameter of a policy.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its type, unit and range.
    pub kind: Kind,
    /// Its default.
    pub default: Value,
    /// Its meaning, in one line.
    pub summary: &'static str,
}

impl Setting {
    /// A number without a unit.
    pub const fn real(
        name: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
        summary: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Real(range), default: Value::Real(default), summary }
    }

    /// A whole number without a unit.
    pub const fn count(
        name: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
        summary: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Count(range), default: Value::Number(default), summary }
    }

    /// The value of a policy that does not set it.
    fn value(&self) -> Value {
        self.default.clone()
    }

    /// A span of time.
    pub const fn time(
        name: &'static str,
        default: Duration,
        range: RangeInclusive<Duration>,
        summary: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Time(range), default: Value::Time(default), summary }
    }
}

/// The policy chosen for a decision: an entry, and the values of its parameters.
///
/// In text, as on the command line: `hybrid`, or `aimd:increase=2,decrease=0.5`.
pub struct Policy<T: ?Sized + 'static> {
    entry: &'static Entry<T>,
    /// The value of each parameter of the entry.
    values: Arc<[Value]>,
}

impl<T: ?Sized> Policy<T> {
    /// The entry.
    pub const fn entry(&self) -> &'static Entry<T> {
        self.entry
    }

    /// Whether it is this entry, whatever the values of its parameters.
    pub fn is(&self, entry: &'static Entry<T>) -> bool {
        std::ptr::eq(self.entry, entry)
    }

    /// The policy that `text` denotes, which is one of `entries`.
    ///
    /// # Errors
    /// No entry or parameter has this name, or a value is not allowed.
    pub(crate) fn read(entries: &[&'static Entry<T>], text: &str) -> Result<Self, PolicyError> {
        let (name, given) = match text.split_once(':') {
            Some((name, given)) => (name.trim(), given),
            None => (text.trim(), ""),
        };
        let Some(entry) = find(entries, name) else {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
            let suggestion = closest(name, &names);
            return Err(PolicyError { allowed: names.join(", "), suggestion });
        };
        let mut values: Vec<Value> = entry.parameters.iter().map(Setting::value).collect();
        for pair in given.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) =
                pair.split_once('=').map_or((pair, ""), |(k, v)| (k.trim(), v.trim()));
            set(entry.name, entry.parameters, &mut values, (key, value))?;
        }
        Ok(Self { entry, values: values.into() })
    }

    /// Makes the policy for an association.
    pub fn make(&self, setup: &Setup<'_>) -> Box<T> {
        let settings = Settings { of: self.entry.parameters, values: &self.values };
        let entry = Replacement::find(setup.replacements(), self.entry);
        (entry.make)(&Setup { settings, ..*setup })
    }
}

/// Sets the value of the parameter `key` of the policy `name` to what `text` denotes.
fn set(
    name: &'static str,
    settings: &[Setting],
    values: &mut [Value],
    (key, text): (&str, &str),
) -> Result<(), PolicyError> {
    let Some(at) = settings.iter().position(|setting| setting.name == key) else {
        let names: Vec<&'static str> = settings.iter().map(|setting| setting.name).collect();
        let suggestion = closest(key, &names);
        let allowed = if names.is_empty() {
            format!("{name} without parameters")
        } else {
            format!("{name} with the parameters {}", names.join(", "))
        };
        return Err(PolicyError { allowed, suggestion });
    };
    let kind = &settings[at].kind;
    let Some(value) = kind.read(text).filter(|value| kind.contains(value)) else {
        let unit = kind.unit().map(|unit| format!(": {unit}")).unwrap_or_default();
        return Err(PolicyError {
            allowed: format!("{name} with {key} {}{unit}", kind.allowed()),
            suggestion: closest(text, kind.names()),
        });
    };
    values[at] = value;
    Ok(())
}

/// A text that denotes no policy.
#[derive(Debug)]
pub(crate) struct PolicyError {
    pub(crate) allowed: String,
    pub(crate) suggestion: Option<&'static str>,
}

impl<T: ?Sized> Deref for Policy<T> {
    type Target = Entry<T>;

    fn deref(&self) -> &Entry<T> {
        self.entry
    }
}

/// The policy with the defaults of its parameters.
impl<T: ?Sized> From<&'static Entry<T>> for Policy<T> {
    fn from(entry: &'static Entry<T>) -> Self {
        Self { entry, values: entry.parameters.iter().map(Setting::value).collect() }
    }
}

impl<T: ?Sized> From<&Self> for Policy<T> {
    fn from(policy: &Self) -> Self {
        policy.clone()
    }
}

impl<T: ?Sized> Clone for Policy<T> {
    fn clone(&self) -> Self {
        Self { entry: self.entry, values: self.values.clone() }
    }
}

/// Name and values identify a policy.
impl<T: ?Sized> PartialEq for Policy<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.values == other.values
    }
}

impl<T: ?Sized> fmt::Debug for Policy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Its name, and the parameters that differ from their defaults.
impl<T: ?Sized> fmt::Display for Policy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let mut separator = ':';
        for (setting, value) in self.parameters.iter().zip(&*self.values) {
            if *value != setting.default {
                write!(f, "{separator}{}={}", setting.name, setting.kind.write(value))?;
                separator = ',';
            }
        }
        Ok(())
    }
}

/// What a policy is made from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setup<'a> {
    /// The constants of the association.
    pub constants: &'a Constants,
    /// Whether the scheduler sends new data on several paths at a time.
    pub concurrent: bool,
    /// The name of the probing policy.
    pub probing: &'static str,
    /// The values of the policy's own parameters.
    pub settings: Settings<'a>,
}

impl<'a> Setup<'a> {
    /// The value of the policy's own parameter of this name, a number.
    ///
    /// # Panics
    /// The policy's entry lists no such parameter.
    pub fn real(&self, name: &str) -> f64 {
        self.settings.real(name)
    }

    /// The value of the policy's own parameter of this name, a whole number.
    ///
    /// # Panics
    /// The policy's entry lists no such parameter.
    pub fn number(&self, name: &str) -> u64 {
        self.settings.number(name)
    }

    /// The value of the policy's own parameter of this name, a span of time.
    ///
    /// # Panics
    /// The policy's entry lists no such parameter.
    pub fn time(&self, name: &str) -> Duration {
        self.settings.time(name)
    }

    /// The sender's own versions of policies.
    fn replacements(&self) -> &'static [Replacement] {
        self.constants.procedures().sender().policies
    }

    pub(crate) const fn new(
        constants: &'a Constants,
        concurrent: bool,
        probing: &'static str,
    ) -> Self {
        Self { constants, concurrent, probing, settings: Settings { of: &[], values: &[] } }
    }
}

/// The values of a policy's own parameters.
///
/// # Panics
/// Each method panics if the policy's entry lists no parameter of this name and kind.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    of: &'static [Setting],
    values: &'a [Value],
}

impl Settings<'_> {
    fn get(&self, name: &str) -> &Value {
        let at = self.of.iter().position(|setting| setting.name == name);
        at.and_then(|at| self.values.get(at))
            .unwrap_or_else(|| panic!("the policy's entry has no parameter {name:?}"))
    }

    /// A span of time.
    pub fn time(&self, name: &str) -> Duration {
        match self.get(name) {
            Value::Time(time) => *time,
            other => panic!("{name} is no span of time, but {other:?}"),
        }
    }

    /// A number of bytes, or a whole number.
    pub fn number(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Number(number) => *number,
            other => panic!("{name} is no whole number, but {other:?}"),
        }
    }

    /// A number.
    pub fn real(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Real(number) => *number,
            other => panic!("{name} is no number of kind Real, but {other:?}"),
        }
    }

    /// True or false.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Flag(flag) => *flag,
            other => panic!("{name} is no flag, but {other:?}"),
        }
    }

    /// A name.
    pub fn name(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Name(text) => text,
            other => panic!("{name} is no name, but {other:?}"),
        }
    }
}

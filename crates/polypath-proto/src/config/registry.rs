//! Policies and profiles by name.

use super::profiles::{PROFILES, Profile};
use super::{Config, Registry};
use crate::SENDERS;
use crate::constants::ConfigError;
use crate::policy::entry::{Entry, Needs, Policy, PolicyError, Setting};

/// A policy as it is listed.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// What it does and its source, in one line.
    pub summary: &'static str,
    /// Its own parameters.
    pub parameters: &'static [Setting],
    /// What it needs.
    pub needs: Needs,
}

impl Registered {
    pub(super) fn of<T: ?Sized>(entry: &'static Entry<T>) -> Self {
        let Entry { name, summary, parameters, needs, .. } = *entry;
        Self { name, summary, parameters, needs }
    }
}

/// What can be added to a [`Registry`]: a `&'static Entry<dyn Decision>` for each decision, and a
/// [`Profile`].
pub trait Addition {
    /// Adds it; it replaces an earlier one of the same name.
    fn add_to(self, registry: &mut Registry);
}

impl Addition for Profile {
    fn add_to(self, registry: &mut Registry) {
        registry.profiles.retain(|profile| profile.name != self.name);
        registry.profiles.push(self);
    }
}

impl Registry {
    /// The policies and profiles of this crate, with those of the senders in this build.
    pub fn standard() -> Self {
        let own =
            PROFILES.iter().fold(Self::policies(), |registry, profile| registry.with(*profile));
        SENDERS.iter().fold(own, |registry, sender| (sender.register)(registry))
    }

    /// Adds a policy or a profile; it replaces an earlier one of the same name.
    pub fn add(&mut self, addition: impl Addition) {
        addition.add_to(self);
    }

    /// The registry with this policy or profile; it replaces an earlier one of the same name.
    #[must_use]
    pub fn with(mut self, addition: impl Addition) -> Self {
        self.add(addition);
        self
    }

    /// Every profile.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The configuration of the profile of this name, or `None`.
    pub fn profile(&self, name: &str) -> Option<Config> {
        self.profiles.iter().find(|profile| profile.name == name).map(|profile| (profile.make)())
    }
}

/// [`Registry::standard`].
impl Default for Registry {
    fn default() -> Self {
        Self::standard()
    }
}

/// The policy that `text` denotes for a decision.
pub(super) fn read<T: ?Sized>(
    decision: &'static str,
    entries: &[&'static Entry<T>],
    text: &str,
) -> Result<Policy<T>, ConfigError> {
    Policy::read(entries, text).map_err(|PolicyError { allowed, suggestion }| ConfigError {
        suggestion,
        ..ConfigError::new(decision, format!("{text:?}"), allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;
    use crate::policy::scheduler::{PRIMARY, Scheduler};

    static LIMITED: Entry<dyn Scheduler> =
        Entry::<dyn Scheduler>::new("limited", "the primary path", |setup| {
            assert!(setup.settings.number("packets") > 0);
            PRIMARY.make(setup)
        })
        .with_parameters(&LIMITS);

    static LIMITS: [Setting; 2] = [
        Setting::count("packets", 3, 1..=9, "most packets"),
        Setting::real("share", 0.5, 0.0..=1.0, "share of the window"),
    ];

    fn chosen(text: &str) -> Result<Config, String> {
        let registry = Registry::standard().with(&LIMITED);
        let overrides = Overrides { scheduler: Some(text.to_owned()), ..Overrides::default() };
        let builder = Config::builder().overrides(&overrides, &registry);
        builder.and_then(|builder| builder.build()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_policy_of_another_crate_is_chosen_with_its_parameters() {
        for text in ["limited", "limited:packets=5", "limited:packets=5,share=0.25"] {
            let config = chosen(text).unwrap();
            assert_eq!(config.scheduler().to_string(), text);
            let _ = config.scheduler().make(&config.setup());
        }
        assert_eq!(chosen(" limited : packets = 3 ").unwrap().scheduler().to_string(), "limited");
    }

    #[test]
    fn errors_name_the_parameter_and_what_is_allowed() {
        let table = [
            (
                "limted",
                "scheduler is \"limted\", but must be primary, concurrent, delay-aware, bottleneck-aware, earliest, limited; did \
                 you mean \"limited\"?",
            ),
            (
                "limited:packet=2",
                "scheduler is \"limited:packet=2\", but must be limited with the parameters packets, \
                 share; did you mean \"packets\"?",
            ),
            (
                "limited:packets=10",
                "scheduler is \"limited:packets=10\", but must be limited with packets from 1 to 9",
            ),
            (
                "limited:share=nan",
                "scheduler is \"limited:share=nan\", but must be limited with share from 0 to 1",
            ),
            ("primary:x=1", "scheduler is \"primary:x=1\", but must be primary without parameters"),
        ];
        for (text, expected) in table {
            assert_eq!(chosen(text).unwrap_err(), expected);
        }
    }
}

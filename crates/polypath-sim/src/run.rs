//! Running a scenario.

use std::io::Write;

use crate::application::Applications;
use crate::outcome::Outcome;
use crate::probe::Probe;
use crate::scenario::{CheckEvery, Scenario, Series};
use crate::series::Recorder;
use crate::simulation::{SimError, Simulation};
use crate::units::Span;

/// Settings of one run that override the scenario's.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The root seed.
    pub seed: Option<u64>,
    /// How often the invariants are checked.
    pub check_every: Option<CheckEvery>,
    /// Samples to take over time.
    pub series: Option<Series>,
    /// Whether the outcome contains every packet at every link.
    pub packets: bool,
    /// End the run as [`Stalled`](crate::outcome::End::Stalled) once no association has made
    /// progress for this long after the last scheduled change of the network. An association makes
    /// progress when a message is sent, delivered or abandoned, when a byte is acknowledged, or
    /// when its handshake or shutdown advances.
    pub patience: Option<Span>,
    /// The applications that workloads with `kind = "application"` name.
    pub applications: Applications,
}

impl Scenario {
    /// Runs the scenario to its end.
    ///
    /// # Errors
    /// The scenario is invalid, or an invariant did not hold.
    pub fn run(&self, options: &RunOptions) -> Result<Outcome, SimError> {
        self.run_seen(options, None, None)
    }

    /// Runs the scenario to its end and writes a pcapng capture of every link. Pass a buffered
    /// writer.
    ///
    /// # Errors
    /// As [`run`](Self::run), or the capture cannot be written.
    pub fn run_captured(
        &self,
        options: &RunOptions,
        capture: &mut (dyn Write + Send),
    ) -> Result<Outcome, SimError> {
        self.run_seen(options, Some(capture), None)
    }

    /// Runs the scenario to its end and lets a probe see it.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_probed(
        &self,
        options: &RunOptions,
        probe: &mut dyn Probe,
    ) -> Result<Outcome, SimError> {
        self.run_seen(options, None, Some(probe))
    }

    fn run_seen(
        &self,
        options: &RunOptions,
        capture: Option<&mut (dyn Write + Send)>,
        probe: Option<&mut dyn Probe>,
    ) -> Result<Outcome, SimError> {
        let series = options.series.as_ref().or(self.series.as_ref());
        let interval = |series: &Series| series.interval.map(|interval| interval.duration());
        let mut recorder = series.map(|series| Recorder::new(interval(series)));
        let mut simulation = self.simulation(options, capture.is_some())?;
        if let Some(capture) = capture {
            simulation.capture(capture)?;
        }
        if let Some(recorder) = &mut recorder {
            simulation.probe(recorder);
        }
        if let Some(probe) = probe {
            simulation.probe(probe);
        }
        let mut outcome = simulation.run()?;
        outcome.series = recorder.map(Recorder::finish).unwrap_or_default();
        Ok(outcome)
    }

    /// Bytes that each association has delivered from the side that opened it by each of these
    /// times, in ascending order: what the outcomes of runs with these limits have, from one run.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn delivered_by(
        &self,
        options: &RunOptions,
        times: &[Span],
    ) -> Result<Vec<Vec<u64>>, SimError> {
        self.simulation(options, false)?.delivered_by(times)
    }

    fn simulation<'w>(
        &self,
        options: &RunOptions,
        captured: bool,
    ) -> Result<Simulation<'w>, SimError> {
        let mut scenario = self.clone();
        scenario.seed = options.seed.unwrap_or(self.seed);
        scenario.run.check_every = options.check_every.unwrap_or(self.run.check_every);
        let plan = scenario.plan()?;
        let mut simulation = Simulation::new(&scenario, plan, &options.applications, captured)?;
        if options.packets {
            simulation.trace();
        }
        if let Some(patience) = options.patience {
            simulation.watch(patience.duration());
        }
        Ok(simulation)
    }
}

//! Running a scenario.

use std::io::Write;

use crate::outcome::Outcome;
use crate::scenario::{CheckEvery, Scenario, Series};
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
}

impl Scenario {
    /// Runs the scenario to its end.
    ///
    /// # Errors
    /// The scenario is invalid, or an invariant did not hold.
    pub fn run(&self, options: &RunOptions) -> Result<Outcome, SimError> {
        self.simulation(options, false)?.run()
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
        let mut simulation = self.simulation(options, true)?;
        simulation.capture(capture)?;
        simulation.run()
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
        scenario.series = options.series.clone().or(scenario.series);
        let plan = scenario.plan()?;
        let mut simulation = Simulation::new(&scenario, plan, captured)?;
        if options.packets {
            simulation.trace();
        }
        if let Some(patience) = options.patience {
            simulation.watch(patience.duration());
        }
        Ok(simulation)
    }
}

//! A test harness for one failover policy and a few paths: each error or answer makes the same
//! calls as the association, in the same order.

use std::net::{IpAddr, Ipv4Addr};

use super::{FailoverPolicy, NoActivePath, PathErrorKind, Thresholds};
use crate::path::Path;
use crate::policy::congestion::NewPath;
use crate::policy::entry::Entry;
use crate::policy::{PathState, PathsView};
use crate::{Config, PathId, Rng, Time};

pub(super) use PathState::{Active as A, Inactive as I, PotentiallyFailed as P};

pub(super) struct Drill {
    policy: Box<dyn FailoverPolicy>,
    paths: Vec<Path>,
    primary: PathId,
    current: PathId,
    rng: Rng,
    steps: u64,
}

impl Drill {
    /// `paths` active paths with Path.Max.Retrans `pmr`.
    pub(super) fn new(answer: &'static Entry<dyn FailoverPolicy>, paths: u8, pmr: u32) -> Self {
        Self::with(
            answer,
            paths,
            Thresholds {
                path_max_retrans: pmr,
                potentially_failed_max_retrans: 0,
                change_primary: None,
            },
        )
    }

    pub(super) fn with(
        answer: &'static Entry<dyn FailoverPolicy>,
        paths: u8,
        thresholds: Thresholds,
    ) -> Self {
        let config = Config::rfc9260();
        let mut controller = config.congestion().make(&config.setup());
        let path = |id| {
            let ip = IpAddr::V4(Ipv4Addr::new(10, id, 0, 1));
            let remote = (ip, 9).into();
            let mut path = Path::new(
                PathId(id),
                ip,
                remote,
                (1480, 20),
                config.constants(),
                |max_chunk, ssthresh, ip| {
                    let sizes = (max_chunk, ssthresh, ip);
                    controller.initial(&NewPath::new(Time::ZERO, PathId(id), sizes))
                },
                Time::ZERO,
            );
            path.set_thresholds(thresholds);
            path.set_state(Time::ZERO, A);
            path
        };
        let paths = (0..paths).map(path).collect();
        Self {
            policy: answer.make(&config.setup()),
            paths,
            primary: PathId(0),
            current: PathId(0),
            rng: Rng::new(&crate::Seed::from_u64(1)),
            steps: 0,
        }
    }

    /// Makes a path unconfirmed.
    pub(super) fn with_unconfirmed(mut self, path: u8) -> Self {
        self.paths[usize::from(path)].set_state(Time::ZERO, PathState::Unconfirmed);
        self
    }

    fn view(&self) -> PathsView<'_> {
        PathsView { paths: &self.paths, primary: self.primary, current: self.current }
    }

    fn ask(
        &mut self,
        what: impl FnOnce(&mut dyn FailoverPolicy, PathsView<'_>) -> PathId,
    ) -> PathId {
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        what(&mut *self.policy, view)
    }

    /// The time of the next step; no two steps are simultaneous.
    fn now(&mut self) -> Time {
        self.steps += 1;
        Time::from_nanos(self.steps)
    }

    /// Counts an error on a path.
    pub(super) fn error(&mut self, path: u8) -> &mut Self {
        self.paths[usize::from(path)].count_error();
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let on = view.path(PathId(path));
        let state = self.policy.after_error(&on, PathErrorKind::DataTimeout, view);
        let now = self.now();
        self.paths[usize::from(path)].set_state(now, state);
        self.current = self.ask(|policy, view| policy.current(view));
        self.primary = self.ask(|policy, view| policy.primary(view));
        self
    }

    /// Counts errors on several paths, in order.
    pub(super) fn errors(&mut self, paths: &[u8]) -> &mut Self {
        paths.iter().for_each(|path| {
            self.error(*path);
        });
        self
    }

    /// The peer answers on a path.
    pub(super) fn answer(&mut self, path: u8) -> &mut Self {
        self.paths[usize::from(path)].clear_errors();
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let state = self.policy.after_answer(&view.path(PathId(path)), view);
        self.primary = self.ask(|policy, view| policy.primary_after_answer(view));
        let now = self.now();
        self.paths[usize::from(path)].set_state(now, state);
        self.current = self.ask(|policy, view| policy.current(view));
        self
    }

    /// Data waits to be sent, and no path is active.
    pub(super) fn strand(&mut self) -> NoActivePath {
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let no_active_path = self.policy.without_active_path(view, &mut self.rng);
        if let NoActivePath::Activate(path) = no_active_path {
            let now = self.now();
            self.paths[path.index()].set_state(now, A);
        }
        no_active_path
    }

    /// The path for new data.
    pub(super) fn current(&self) -> u8 {
        self.current.0
    }

    pub(super) fn primary(&self) -> u8 {
        self.primary.0
    }

    pub(super) fn states(&self) -> Vec<PathState> {
        self.view().iter().map(|p| p.state).collect()
    }

    /// The path for the retransmission of a chunk last sent on `last`, in the dormant state.
    pub(super) fn retransmission(&self, last: u8) -> u8 {
        self.policy.retransmission(PathId(last), self.view()).0
    }

    /// The paths that are probed at once.
    pub(super) fn probed(&self) -> Vec<u8> {
        let all = self.paths.iter().map(Path::view);
        all.filter(|p| self.policy.probes_at_once(p)).map(|p| p.id.0).collect()
    }

    pub(super) fn path(&mut self, path: u8) -> &mut Path {
        &mut self.paths[usize::from(path)]
    }
}

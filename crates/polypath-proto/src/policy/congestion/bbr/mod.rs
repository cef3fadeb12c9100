//! BBR version 3 (draft-ietf-ccwg-bbr): measures the bandwidth and the shortest round-trip time of
//! the path, and paces at that bandwidth; losses bound the data in flight.
//!
//! Deviations: losses that the path causes without a queue are not taken for congestion
//! (`ambient.rs`); a mark of ECN, for which the draft demands some response, counts as a loss
//! (`loss.rs`); random waits are derived from the time; the offload budget is one quantum, as the
//! draft proposes for QUIC. The paths of an association probe for bandwidth in turns, so that a
//! retransmission finds a path whose queue is not full; and when another path is left, a path that
//! has filled its queue drains it, because it is about to carry what the other one has lost
//! (`probe_bw.rs`).
//!
//! | file | draft |
//! |---|---|
//! | `model.rs` | 2: state, parameters; 5.5.1: rounds; 5.6.4.2: volumes |
//! | `startup.rs` | 5.3.1, 5.3.2: Startup, Drain |
//! | `probe_bw.rs` | 5.3.3: the cycle of bandwidth probing |
//! | `probe_rtt.rs` | 5.3.4: ProbeRTT, the shortest round-trip time |
//! | `loss.rs` | 5.5.10, 5.5.11: bounds after losses, undo |
//! | `control.rs` | 5.2.3: steps for an acknowledgement; 5.5.9: aggregation; 5.6: rate, window |
//! | `filter.rs` | windowed maxima |
//! | `ambient.rs` | not in the draft: the path's own losses |

mod ambient;
mod control;
mod filter;
mod loss;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;

#[cfg(test)]
mod link;
#[cfg(test)]
mod tests;

use super::{
    Congestion, CongestionController, Context, Loss, NewPath, PathAck, PathTable, Sent, Spurious,
};
use crate::path::{PathView, Window};
use crate::policy::entry::{Entry, Needs};
use crate::time::Time;
use model::{Ack, Model};

/// See the [module](self).
pub static BBR: Entry<dyn CongestionController> = Entry::<dyn CongestionController>::new(
    "bbr",
    "paces at the measured bandwidth and bounds the data in flight, version 3 (draft-ietf-ccwg-bbr)",
    |setup| Box::new(Bbr { initial: setup.constants.initial_cwnd(), paths: PathTable::default() }),
)
.with_needs(Needs::NONE.sending().delivery_samples().pacing());

/// The window never grows beyond this many bytes.
const MOST: u64 = 1 << 30;

#[derive(Debug)]
struct Bbr {
    /// In PMDCS; 0 selects RFC 9260's formula.
    initial: u32,
    paths: PathTable<Model>,
}

impl Bbr {
    fn model(&mut self, context: &Context<'_>) -> &mut Model {
        let Context { now, path, .. } = *context;
        let sizes = (path.max_chunk, path.window.ssthresh, path.remote);
        let new = NewPath::new(now, path.id, sizes);
        let initial = new.initial_cwnd(self.initial);
        let model = self.paths.get_or_insert_with(path.id, || Model::new(&new, initial));
        // Path MTU discovery may change it.
        model.smss = path.max_chunk.max(1).into();
        model
    }
}

/// The window of `cwnd` bytes, with the model's pacing rate.
fn window(path: &PathView, model: &Model, cwnd: u64) -> Window {
    let cwnd = cwnd.clamp(path.max_chunk.into(), MOST) as u32;
    Window { pacing_rate: Some(model.pacing_rate.max(1)), cwnd, ..path.window }
}

impl CongestionController for Bbr {
    fn initial(&mut self, path: &NewPath) -> Window {
        let cwnd = path.initial_cwnd(self.initial);
        self.paths.reset(path.id);
        let model = self.paths.get_or_insert_with(path.id, || Model::new(path, cwnd));
        Window { pacing_rate: Some(model.pacing_rate), ..Window::unpaced(cwnd, path.ssthresh) }
    }

    fn on_sent(&mut self, context: &Context<'_>, sent: &Sent) -> Window {
        let model = self.model(context);
        let path = context.path;
        let mut cwnd = u64::from(path.window.cwnd);
        model.init_pacing_rate(cwnd, path.srtt);
        // Not even one more packet would fit.
        model.cwnd_limited.0 |= u64::from(path.in_flight) + model.smss > cwnd;
        if sent.in_flight_before == 0 && sent.app_limited {
            cwnd = model.restart_from_idle(context.now, cwnd);
        }
        window(path, model, cwnd)
    }

    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let path = context.path;
        let another_probes = context.paths.count() > 1
            && self.paths.iter().any(|(id, other)| {
                id != path.id && other.state.raises_inflight() && context.paths.is_active(id)
            });
        let model = self.model(context);
        model.another_probes = another_probes;
        model.delivered = match ack.delivery {
            Some(sample) => sample.delivered,
            None => model.delivered + u64::from(ack.acked),
        };
        model.init_pacing_rate(path.window.cwnd.into(), path.srtt);
        let ack = Ack::new(context.now, path, ack, model.limited_until);
        let cwnd = model.update_on_ack(&ack);
        window(path, model, cwnd)
    }

    fn on_loss(&mut self, context: &Context<'_>, loss: &Loss) -> Window {
        let model = self.model(context);
        let cwnd = u64::from(context.path.window.cwnd);
        model.handle_lost(context.now, cwnd, loss.bytes.into(), loss.delivery);
        window(context.path, model, cwnd)
    }

    fn on_congestion(&mut self, context: &Context<'_>, congestion: Congestion) -> Window {
        let model = self.model(context);
        let cwnd = u64::from(context.path.window.cwnd);
        match congestion {
            // `OnEnterFastRecovery`; the state was saved with the first loss.
            Congestion::Loss => {
                model.save_cwnd(cwnd);
                model.in_recovery = true;
            }
            Congestion::Ecn => {
                model.handle_mark(context.now, cwnd, context.path.in_flight.into());
            }
        }
        window(context.path, model, cwnd)
    }

    fn on_recovered(&mut self, context: &Context<'_>) -> Window {
        let model = self.model(context);
        model.in_recovery = false;
        let cwnd = model.restored_cwnd(context.path.window.cwnd.into());
        window(context.path, model, model.bounded_cwnd(cwnd))
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        let model = self.model(context);
        // `OnEnterRTO`: "C.cwnd = C.inflight + 1". All that is in flight is given up.
        model.save_state_upon_loss(context.path.window.cwnd.into());
        model.in_recovery = true;
        window(context.path, model, model.smss)
    }

    fn on_spurious(&mut self, context: &Context<'_>, _: &Spurious) -> Window {
        let model = self.model(context);
        model.in_recovery = false;
        let cwnd = model.undo(context.path.window.cwnd.into());
        model.bound_bw();
        window(context.path, model, model.bounded_cwnd(cwnd))
    }

    fn on_path_left(&mut self, context: &Context<'_>) -> Window {
        let model = self.model(context);
        model.stop_probing(context.now, context.path.last_rtt);
        window(context.path, model, context.path.window.cwnd.into())
    }

    fn on_idle(&mut self, _: Time, path: &PathView, _: bool) -> Window {
        // Draft 5.4.1: "When restarting from idle in ProbeBW states, BBR leaves C.cwnd as-is and
        // paces packets at exactly BBR.bw".
        path.window
    }
}

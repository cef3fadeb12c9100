//! Additive increase, multiplicative decrease, with both numbers as parameters: the family of which
//! Reno's window (1, 0.5) is one member (Chiu and Jain, 1989).

use polypath_proto::policy::prelude::*;

/// `aimd:increase=2,decrease=0.7`
pub static AIMD: Entry<dyn CongestionController> = Entry::<dyn CongestionController>::new(
    "aimd",
    "each round trip adds some packets, each loss leaves a share of the window (AIMD)",
    |setup| Box::new(Aimd { increase: setup.real("increase"), decrease: setup.real("decrease") }),
)
.with_parameters(&PARAMETERS);

static PARAMETERS: [Setting; 2] = [
    Setting::real("increase", 1.0, 0.01..=100.0, "packets added each round trip"),
    Setting::real("decrease", 0.5, 0.05..=0.95, "share of the window left by a loss"),
];

#[derive(Debug)]
struct Aimd {
    increase: f64,
    decrease: f64,
}

impl CongestionController for Aimd {
    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let mut w = context.path.window;
        if ack.may_grow && ack.in_flight_before >= w.cwnd {
            let each = self.increase * f64::from(context.path.max_chunk) / f64::from(w.cwnd);
            w.cwnd += (f64::from(ack.acked) * if w.in_slow_start() { 1.0 } else { each }) as u32;
        }
        w
    }

    fn on_congestion(&mut self, context: &Context<'_>, _: Congestion) -> Window {
        let left = f64::from(context.path.window.cwnd) * self.decrease;
        let cwnd = (left as u32).max(2 * context.path.max_chunk);
        Window::unpaced(cwnd, cwnd)
    }
}

#[cfg(test)]
mod tests {
    use polypath_proto::policy::testing::{self, TestPaths};

    use super::*;

    #[test]
    fn a_window_grows_by_the_increase_and_shrinks_to_the_share() {
        let mut aimd = testing::make_as(&AIMD, "aimd:increase=2,decrease=0.7");
        let mut paths = TestPaths::new(1);
        paths.set_window(0, 14_600, 14_600);
        // A whole window is acknowledged: one round trip.
        let window = paths.on(0, |context| aimd.on_ack(context, &testing::path_ack(14_600)));
        assert_eq!(window.cwnd, 14_600 + 2 * 1_460);
        let window = paths.on(0, |context| aimd.on_congestion(context, Congestion::Loss));
        assert_eq!(window.cwnd, 10_220);
    }
}

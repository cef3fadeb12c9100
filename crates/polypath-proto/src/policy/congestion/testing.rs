//! Drives a congestion controller without an association, for tests of policies.
//!
//! ```
//! use std::time::Duration;
//!
//! use polypath_proto::Config;
//! use polypath_proto::policy::congestion::{RFC9260, testing::Drill};
//!
//! let config = Config::rfc9260();
//! let mut drill = Drill::new(RFC9260.make(&config.setup()), RFC9260.needs);
//! // RFC 9260 7.2.1: three full packets of an Ethernet at first.
//! assert_eq!(drill.window().cwnd, 4404);
//! drill.send_all();
//! drill.advance(Duration::from_millis(100));
//! drill.ack(2);
//! assert!(drill.window().cwnd > 4404);
//! ```

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::{Congestion, CongestionController, Context, Loss, NewPath, PathAck, Sent, Spurious};
use crate::constants::Constants;
use crate::ids::{PathId, Tsn};
use crate::path::{Earlier, Path, PathView, PathsView, Window};
use crate::policy::entry::Needs;
use crate::time::Time;

/// One controller and one path, whose packets are all of the largest size.
#[derive(Debug)]
pub struct Drill<C: CongestionController + ?Sized = dyn CongestionController> {
    controller: Box<C>,
    needs: Needs,
    path: [Path; 1],
    now: Time,
    next: Tsn,
    /// When each packet in flight was sent.
    in_flight: VecDeque<Time>,
    recovering: bool,
    /// The window before the last reaction to a loss.
    before: Window,
}

impl<C: CongestionController + ?Sized> Drill<C> {
    /// A controller with the needs of its entry, and a new path for packets of 1500 bytes over
    /// IPv4.
    pub fn new(mut controller: Box<C>, needs: Needs) -> Self {
        let ip = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        // The origin of the clock is not the time of the first event.
        let now = Time::from_secs(1000);
        let (id, constants) = (PathId(0), Constants::rfc9260());
        let initial = |max_chunk, ssthresh, remote| {
            controller.initial(&NewPath::new(now, id, (max_chunk, ssthresh, remote)))
        };
        let mut path = Path::new(id, ip, (ip, 9).into(), (1480, 20), &constants, initial, now);
        if needs.delivery_samples {
            path.sample_delivery();
        }
        let before = path.window();
        Self {
            controller,
            needs,
            path: [path],
            now,
            next: Tsn(1),
            in_flight: VecDeque::new(),
            recovering: false,
            before,
        }
    }

    /// The controller.
    pub fn controller(&self) -> &C {
        &self.controller
    }

    /// The current time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Lets time pass; wakes the controller if it has asked for that.
    pub fn advance(&mut self, span: Duration) {
        self.advance_to(self.now + span);
    }

    /// Lets time pass until `time`, unless that is in the past.
    pub fn advance_to(&mut self, time: Time) {
        let end = self.now.max(time);
        while let Some(at) = self.controller.wake_at(PathId(0)).filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.control(|controller, context| controller.on_wake(context));
            if self.controller.wake_at(PathId(0)).is_some_and(|again| again <= at) {
                break;
            }
        }
        self.now = end;
    }

    /// The path's current state.
    pub fn view(&self) -> PathView {
        self.path[0].view()
    }

    /// The path's window.
    pub fn window(&self) -> Window {
        self.path[0].window()
    }

    /// Sets the congestion window to a number of packets.
    pub fn set_cwnd(&mut self, packets: u32) {
        let cwnd = packets * self.view().max_chunk;
        let window = Window { cwnd, ..self.window() };
        self.path[0].set_window(window);
    }

    /// Packets in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn control(&mut self, event: impl FnOnce(&mut C, &Context<'_>) -> Window) {
        let paths = PathsView { paths: &self.path, primary: PathId(0), current: PathId(0) };
        let view = self.path[0].view();
        let window = event(&mut *self.controller, &Context::new(self.now, &view, paths));
        self.path[0].set_window(window);
    }

    /// Whether the window and the pacer allow a packet now.
    pub fn may_send(&self) -> bool {
        self.path[0].has_room() && self.path[0].is_released(self.now)
    }

    /// When the pacer allows the next packet.
    pub fn next_release(&self) -> Option<Time> {
        let held = self.path[0].has_room() && !self.path[0].is_released(self.now);
        held.then(|| self.path[0].next_release())
    }

    /// Sends a packet, whether it is allowed or not.
    pub fn send(&mut self) {
        let (now, size) = (self.now, self.view().max_chunk);
        self.path[0].resume(now);
        let before = self.path[0].in_flight();
        self.path[0].data_sent(now, self.next, 1, size);
        self.next = self.next.next();
        self.in_flight.push_back(now);
        if self.needs.sending {
            let app_limited = self.path[0].is_app_limited();
            let sent = Sent { bytes: size, in_flight_before: before, app_limited };
            self.control(|controller, context| controller.on_sent(context, &sent));
        }
    }

    /// Sends packets until the window is full, regardless of the pacer.
    pub fn send_all(&mut self) {
        while self.path[0].has_room() {
            self.send();
        }
    }

    /// There is no more data to send for now.
    pub fn run_dry(&mut self) {
        self.path[0].pause(self.now, false, true, None);
    }

    /// There is more data to send, and it waits if the pacer does not allow it now.
    pub fn wait(&mut self) {
        self.path[0].pause(self.now, true, false, None);
    }

    /// The oldest `packets` packets in flight are acknowledged.
    pub fn ack(&mut self, packets: usize) {
        let (now, size) = (self.now, self.view().max_chunk);
        self.path[0].resume(now);
        let before = self.path[0].in_flight();
        let mut newest = None;
        let mut acked = 0;
        for _ in 0..packets {
            let Some(sent) = self.in_flight.pop_front() else { break };
            self.path[0].data_gone(size);
            if let Some(sampler) = self.path[0].sampler() {
                sampler.acknowledged(now, sent, size, Earlier::None);
            }
            newest = Some(sent);
            acked += size;
        }
        let Some(newest) = newest else { return };
        let rtt = now.since(newest);
        self.path[0].sample_rtt(rtt);
        let delivery = self.path[0].sampler().and_then(|sampler| sampler.take_sample(now));
        let ack = PathAck {
            acked,
            acked_by_gaps: 0,
            in_flight_before: before,
            paced: self.path[0].awaits_pacer(),
            advanced: true,
            may_grow: !self.recovering,
            recovering: self.recovering,
            rtt: Some(rtt),
            delivery,
        };
        self.control(|controller, context| controller.on_ack(context, &ack));
    }

    /// The oldest `packets` packets in flight are found lost, which begins a recovery.
    pub fn lose(&mut self, packets: usize) {
        for _ in 0..packets {
            let Some(sent) = self.in_flight.pop_front() else { return };
            self.lose_one(sent);
            if !std::mem::replace(&mut self.recovering, true) {
                self.before = self.window();
                self.congestion(Congestion::Loss);
            }
        }
    }

    fn lose_one(&mut self, sent: Time) {
        let size = self.view().max_chunk;
        self.path[0].data_gone(size);
        let delivery = self.path[0].sampler().and_then(|sampler| sampler.lost(sent, size));
        let loss = Loss { bytes: size, delivery };
        self.control(|controller, context| controller.on_loss(context, &loss));
    }

    /// A sign of congestion.
    pub fn congestion(&mut self, congestion: Congestion) {
        self.before = self.window();
        self.control(|controller, context| controller.on_congestion(context, congestion));
    }

    /// The recovery is over.
    pub fn recovered(&mut self) {
        self.recovering = false;
        self.control(|controller, context| controller.on_recovered(context));
    }

    /// T3-rtx expires: everything in flight is lost.
    pub fn timeout(&mut self) {
        self.recovering = false;
        self.before = self.window();
        self.control(|controller, context| controller.on_timeout(context));
        while let Some(sent) = self.in_flight.pop_front() {
            self.lose_one(sent);
        }
    }

    /// The last reaction to a loss, or to a `timeout`, was spurious.
    pub fn spurious(&mut self, timeout: bool) {
        self.undo(Spurious::new(timeout, self.before));
    }

    /// All reactions to losses were spurious since the window was this one.
    pub fn spurious_since(&mut self, before: Window) {
        self.undo(Spurious::new(false, before));
    }

    fn undo(&mut self, spurious: Spurious) {
        self.recovering = false;
        self.control(|controller, context| controller.on_spurious(context, &spurious));
    }

    /// Nothing was sent for an RTO.
    pub fn idle(&mut self, first: bool) {
        let window = self.controller.on_idle(self.now, &self.path[0].view(), first);
        self.path[0].set_window(window);
    }
}

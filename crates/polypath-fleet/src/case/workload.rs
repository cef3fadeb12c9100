//! Workloads of the applications.

use polypath_sim::scenario::{Direction, SizeRange, Transport, Workload, WorkloadKind};
use polypath_sim::units::{Probability, Rate, Size, Span};

use super::Dice;

pub(super) fn workload(dice: &mut Dice, transport: &Transport) -> Workload {
    let kind = match dice.between(0, 5) {
        0 => WorkloadKind::Periodic,
        1 => WorkloadKind::RequestReply,
        _ => WorkloadKind::Bulk,
    };
    let small = transport.both.receive_buffer.is_some_and(|buffer| buffer < 8_000);
    let largest = dice.spread(1, if small { 20_000 } else { 200_000 });
    let range =
        |dice: &mut Dice| SizeRange { min: Size(dice.spread(1, largest)), max: Size(largest) };
    // Few bytes in total: thousands of cases have to run.
    let total = dice.spread(1_000, if small { 60_000 } else { 300_000 });
    let messages = (total / (largest / 2 + 1)).clamp(1, 300);
    let direction = *dice.0.pick(&[Direction::Forward, Direction::Both, Direction::Back]);
    Workload {
        kind,
        direction: (kind != WorkloadKind::RequestReply).then_some(direction),
        messages: Some(messages),
        message_size: Some(range(dice)),
        reply_size: (kind == WorkloadKind::RequestReply && dice.one_in(2)).then(|| range(dice)),
        interval: match kind {
            WorkloadKind::Bulk => None,
            _ => Some(Span::millis(dice.spread(1, 500))),
        },
        streams: Some(dice.spread(1, 64) as u16),
        unordered: Some(match dice.between(0, 3) {
            0 => dice.percent(100),
            1 => Probability::ONE,
            _ => Probability::ZERO,
        }),
        start: dice.one_in(4).then(|| Span::millis(dice.between(0, 2_000))),
        read_rate: dice.one_in(4).then(|| Rate(dice.spread(50_000, 50_000_000))),
        ..Workload::default()
    }
}

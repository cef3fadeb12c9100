//! The path whose errors an acknowledgement clears (RFC 9260 8.2).

use crate::common::*;
use polypath_proto::*;

fn open() -> Net {
    let config = Config::rfc9260()
        .to_builder()
        .heartbeat_interval(None)
        .path_max_retrans(1)
        .build()
        .unwrap();
    established(2, config)
}

/// The primary carries DATA, but its SACKs are lost: chunks that T3-rtx gave up are acknowledged as
/// soon as one retransmission arrives over the alternate, which proves nothing about the primary.
#[test]
fn a_late_acknowledgement_does_not_hide_a_failure() {
    let mut net = open();
    net.send(0, 0, payload(1, 4000)).unwrap();
    // The messages arrive; from now on the primary carries no packet in either direction.
    net.settle();
    net.cuts.insert(0);
    net.run(S(2));
    assert_eq!(net.hosts[1].received.len(), 1);
    assert_eq!(net.path(0, 0).state, PathState::Active);
    assert_eq!(net.path(0, 0).error_count, 1, "by the timeout, and not forgotten");
    net.send(0, 0, payload(2, 100)).unwrap();
    net.run(S(3));
    assert_eq!(net.path(0, 0).state, PathState::Inactive);
    assert_eq!(net.hosts[1].received.len(), 2);
}

/// The acknowledgement of a chunk sent on both paths does not prove that its last path works.
#[test]
fn a_chunk_that_went_over_two_paths_clears_no_errors() {
    let mut net = open();
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(MS(900));
    // T3-rtx retransmits it on the alternate, which is cut as well, and then on the primary again.
    net.cuts.insert(1);
    net.run(MS(2500));
    let errors = (net.path(0, 0).error_count, net.path(0, 1).error_count);
    assert_eq!(errors, (1, 1));
    net.cuts.clear();
    net.run(S(10));
    assert_eq!(net.hosts[1].received.len(), 1);
    assert!(net.path(0, 0).error_count > 0 || net.path(0, 1).error_count > 0);
    // The acknowledgement of new data clears errors again.
    net.send(0, 0, payload(2, 100)).unwrap();
    net.run(S(10));
    let current = net.a(0).current_path();
    assert_eq!(net.path(0, current.0).error_count, 0);
    assert_eq!(net.hosts[1].received.len(), 2);
}

//! Section 6: ASCONF needs AUTH.

use super::*;

#[test]
fn s6_r2_an_init_with_asconf_and_without_auth_is_aborted() {
    for (types, aborts) in [(&[193, 128][..], true), (&[193, 128, 130], true), (&[130], false)] {
        let mut net = pair(1, config().build().unwrap());
        let hand = Hand::new(1);
        let answers = hand.init(&mut net, &|p| p.supported_extensions(types).unwrap());
        let names: Vec<&str> = answers[0].chunks.iter().map(|c| &c.name[..]).collect();
        assert_eq!(names, if aborts { ["ABORT"] } else { ["INIT ACK"] });
        assert!(!aborts || answers[0].tag == hand.tag);
    }
}

#[test]
fn s6_r3_r4_an_init_ack_with_asconf_and_without_auth_opens_no_association() {
    for (types, refused) in [(&[193, 128][..], true), (&[130], false)] {
        let mut net = pair(1, config().build().unwrap());
        let hand = Hand::new(1).be_called(&mut net);
        hand.say(&mut net, &|w| {
            w.init_ack(&hand.fields(), |p| {
                p.supported_extensions(types)?;
                p.state_cookie(b"a cookie")
            })
            .unwrap();
        });
        net.run(S(10));
        assert_eq!(net.sent_with(1, "COOKIE ECHO").is_empty(), refused);
        let closed = net.events(1, |e| matches!(e, Event::Closed(_)));
        assert_eq!(closed.len(), usize::from(refused), "{:?}", net.hosts[1].events);
    }
}

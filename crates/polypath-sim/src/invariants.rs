//! Invariants that hold at any time, whatever the network does; checked in release builds too.

use polypath_proto::{Association, Time};

use crate::network::Network;
use crate::scenario::CheckEvery;
use crate::stack::Stack;

/// Decides after which events to check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    every: CheckEvery,
    events: u64,
}

/// Scope of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The parts that the last event touched.
    Touched,
    Everything,
}

impl Schedule {
    pub(crate) const fn new(every: CheckEvery) -> Self {
        Self { every, events: 0 }
    }

    /// Counts a handled event and returns the check that is due.
    #[inline]
    pub(crate) fn after_event(&mut self) -> Due {
        self.events += 1;
        match self.every {
            CheckEvery::Events(1) => Due::Touched,
            CheckEvery::Events(n) if self.events >= n => {
                self.events = 0;
                Due::Everything
            }
            _ => Due::Nothing,
        }
    }
}

/// Checks that packets are conserved on every link.
pub(crate) fn check_links(network: &Network<'_>) -> Result<(), String> {
    for (link, plan) in network.links.iter().zip(&network.topology.links) {
        let here = |what| format!("link {}: {what}", plan.name);
        link.counters().check().map_err(here)?;
        // If this holds for the background packets, it holds for the associations' packets too.
        link.background().check().map_err(here)?;
    }
    Ok(())
}

/// Checks that every packet buffer in use is on a link or waits in front of one, or was on one that
/// went down and its arrival event is still queued.
pub(crate) fn check_buffers(network: &Network<'_>) -> Result<(), String> {
    let (used, queued) = (network.packets.in_use(), network.expected_buffers());
    if used > queued + 1 {
        return Err(format!(
            "{used} packet buffers are in use, but only {queued} packets and events wait"
        ));
    }
    Ok(())
}

/// Checks the core's accounting and that the send buffers stay within their configured bound.
pub(crate) fn check_stack(stack: &Stack) -> Result<(), String> {
    stack.endpoint.check_invariants()?;
    for member in &stack.associations {
        if let Some(association) = stack.endpoint.association(member.id) {
            check_buffer(association)?;
        }
    }
    Ok(())
}

fn check_buffer(association: &Association) -> Result<(), String> {
    let config = association.config();
    // A message is accepted whole if there is any room, so the last one may exceed the send buffer.
    let bound = config.send_buffer() as usize + config.max_message_size() as usize;
    let buffered = association.buffered();
    if buffered > bound {
        return Err(format!(
            "{buffered} bytes in the send buffer, but at most {bound} are allowed"
        ));
    }
    Ok(())
}

/// Checks that an endpoint with buffered data has a deadline `due`: without one the data would wait
/// forever.
#[inline]
pub(crate) fn check_deadline(stack: &Stack, due: Option<Time>) -> Result<(), String> {
    if due.is_some() {
        return Ok(());
    }
    for member in &stack.associations {
        let Some(association) = stack.endpoint.association(member.id) else { continue };
        if association.buffered() > 0 && !association.is_closed() {
            return Err(format!(
                "no deadline, although {} bytes wait in the send buffer",
                association.buffered()
            ));
        }
    }
    Ok(())
}

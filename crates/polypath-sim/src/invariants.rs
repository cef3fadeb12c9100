//! What must hold at any time, whatever the network does. Checked in release builds too.

use polypath_proto::Association;

use crate::network::Network;
use crate::scenario::CheckEvery;
use crate::stack::Stack;

/// Decides when to check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    every: CheckEvery,
    events: u64,
}

/// What is to be checked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// What the last event touched.
    Touched,
    Everything,
}

impl Schedule {
    pub(crate) const fn new(every: CheckEvery) -> Self {
        Self { every, events: 0 }
    }

    /// An event has been handled.
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

/// Packets are conserved on every link.
pub(crate) fn check_links(network: &Network<'_>) -> Result<(), String> {
    for (link, plan) in network.links.iter().zip(&network.topology.links) {
        let here = |what| format!("link {}: {what}", plan.name);
        link.counters().check().map_err(here)?;
        // Of the background packets too, and so of the associations' own.
        link.background().check().map_err(here)?;
    }
    Ok(())
}

/// Every packet buffer in use is on a link, or was lost on one that went down and waits for its
/// event.
pub(crate) fn check_buffers(network: &Network<'_>) -> Result<(), String> {
    let (used, queued) = (network.packets.in_use(), network.events.len());
    if used > queued + 1 {
        return Err(format!("{used} packet buffers are in use, but only {queued} events wait"));
    }
    Ok(())
}

/// The core's own accounting, and its buffers as the configuration bounds them.
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
    // A message is taken as a whole, so one may stand out.
    let bound = config.send_buffer().max(config.max_message_size()) as usize;
    let buffered = association.buffered();
    if buffered > bound {
        return Err(format!(
            "{buffered} bytes in the send buffer, but at most {bound} are allowed"
        ));
    }
    Ok(())
}

/// Data that waits has a deadline: otherwise it waits for ever.
#[inline]
pub(crate) fn check_deadline(stack: &mut Stack) -> Result<(), String> {
    if stack.endpoint.poll_timeout().is_some() {
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

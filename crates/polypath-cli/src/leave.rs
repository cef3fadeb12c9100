//! Abandons an association.

use std::time::Duration;

use polypath::{Association, Endpoint};

/// Time for the last packets to be sent.
const FAREWELL: Duration = Duration::from_secs(1);

/// Drops the association and waits for its last packets to be sent.
pub(crate) async fn leave(endpoint: &Endpoint, association: Association) {
    drop(association);
    let _ = tokio::time::timeout(FAREWELL, endpoint.close()).await;
}

//! How an association is given up.

use std::time::Duration;

use polypath::{Association, Endpoint};

/// How long the last packets may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Lets the last packets go.
pub(crate) async fn leave(endpoint: &Endpoint, association: Association) {
    drop(association);
    let _ = tokio::time::timeout(FAREWELL, endpoint.close()).await;
}

//! Endpoints.

use std::sync::Arc;
use std::time::Duration;

use polypath::{ConnectOptions, Endpoint as Inner};
use polypath_apps::accept::{Acceptor, Arrival};
use polypath_apps::consent::{Door, Phrase, greeted, hello};
use polypath_apps::error::Error;
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::net::association::Association;
use crate::net::convert::{bind_error, connect_error, consent_error};
use crate::net::identity::Identity;
use crate::net::operation::{Operation, finish};
use crate::net::options::{Basics, SERVICE, config, fingerprints, remotes, secret, wrong};
use crate::net::wake::runtime;

/// Time for the first message of a peer that is to prove a secret, and for the reply to it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of associations of one address that have proved a secret, or are about to.
const PER_ADDRESS: usize = 64;

/// Local addresses that open and accept associations.
#[pyclass(frozen, module = "polypath._core")]
#[derive(Debug)]
pub(crate) struct Endpoint {
    inner: Inner,
    secret: Option<Phrase>,
    /// Accepts peers that prove the secret.
    acceptor: Option<Arc<Mutex<Acceptor>>>,
}

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (
        addresses, *, port=0, udp_port=0, listen=false, encrypt=true, identity=None, trust=None,
        secret=None, profile=None, settings=Vec::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        addresses: Vec<String>,
        port: u16,
        udp_port: u16,
        listen: bool,
        encrypt: bool,
        identity: Option<&Identity>,
        trust: Option<Vec<String>>,
        secret: Option<&str>,
        profile: Option<&str>,
        settings: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let phrase = self::secret(secret)?;
        if phrase.is_some() && !encrypt {
            return Err(wrong("a secret needs encryption"));
        }
        let known = fingerprints(trust.as_deref().unwrap_or_default())?;
        let basics = Basics { addresses, port, udp_port, listen, encrypt, identity, trust };
        let options = basics.options(config(profile, &settings)?, phrase.is_some())?;
        let runtime = runtime()?;
        py.detach(|| {
            let _in_runtime = runtime.enter();
            let inner = Inner::bind(options).map_err(|error| bind_error(&error))?;
            let acceptor = phrase.clone().filter(|_| listen).map(|phrase| {
                let door = Arc::new(Door::new(known, Some(phrase)));
                let acceptor = Acceptor::start(inner.clone(), SERVICE, door, PER_ADDRESS, PATIENCE);
                Arc::new(Mutex::new(acceptor))
            });
            Ok(Self { inner, secret: phrase, acceptor })
        })
    }

    /// Opens an association; the first address is the primary one.
    #[pyo3(signature = (remotes, port))]
    fn connect(&self, remotes: Vec<(String, u16)>, port: u16) -> PyResult<Operation> {
        let options = ConnectOptions::new(port, self::remotes(remotes)?);
        let (endpoint, secret) = (self.inner.clone(), self.secret.clone());
        Ok(Operation::new(async move {
            let connected = match secret {
                Some(_) => endpoint.connect_with(options, hello(SERVICE, true)).await,
                None => endpoint.connect(options).await,
            };
            let association = match connected {
                Ok(association) => association,
                Err(error) => return finish(move |_| Err(connect_error(&error))),
            };
            if let Some(secret) = secret
                && let Err(error) = prove(&endpoint, &association, &secret).await
            {
                association.abort("the secret was not proved");
                return finish(move |_| Err(consent_error(&error)));
            }
            finish(move |py| Ok(Py::new(py, Association::new(association))?.into_any()))
        }))
    }

    /// The next association; `None` once the endpoint is closed.
    fn accept(&self) -> Operation {
        let (endpoint, acceptor) = (self.inner.clone(), self.acceptor.clone());
        Operation::new(async move {
            let accepted = match acceptor {
                Some(acceptor) => proved(&acceptor).await,
                None => endpoint.accept().await.map(Association::new),
            };
            finish(move |py: Python<'_>| match accepted {
                Some(association) => Ok(Py::new(py, association)?.into_any()),
                None => Ok(py.None()),
            })
        })
    }

    /// Ends all associations gracefully and closes the sockets.
    fn close(&self) -> Operation {
        let endpoint = self.inner.clone();
        Operation::new(async move {
            endpoint.close().await;
            finish(|py: Python<'_>| Ok(py.None()))
        })
    }

    /// Local addresses with their UDP ports.
    #[getter]
    fn addresses(&self) -> Vec<(String, u16)> {
        let locals = self.inner.local_addresses();
        locals.iter().map(|local| (local.ip().to_string(), local.port())).collect()
    }

    /// SCTP port.
    #[getter]
    fn port(&self) -> u16 {
        self.inner.port()
    }

    /// Fingerprint of this side's certificate; `None` in clear.
    #[getter]
    fn fingerprint(&self) -> Option<String> {
        self.inner.fingerprint().map(|fingerprint| fingerprint.to_string())
    }
}

/// Proves the secret, and checks that the peer knows it.
async fn prove(
    endpoint: &Inner,
    association: &polypath::Association,
    secret: &Phrase,
) -> Result<(), Error> {
    let greeting = greeted(association, SERVICE, PATIENCE).await?;
    if !greeting.needs_proof() {
        return Err(Error::Local("the peer does not prove the secret".to_owned()));
    }
    greeting.prove(secret, endpoint.fingerprint()).await.map(|_| ())
}

/// The next peer that has proved the secret.
async fn proved(acceptor: &Mutex<Acceptor>) -> Option<Association> {
    let mut acceptor = acceptor.lock().await;
    loop {
        match acceptor.next().await? {
            Arrival::Accepted(peer) => return Some(Association::of_peer(peer)),
            // The peer has been given the reason.
            Arrival::Refused { .. } => {}
        }
    }
}

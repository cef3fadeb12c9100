//! Keys and certificates.

use polypath::Identity as Inner;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A private key and a certificate.
#[pyclass(frozen, module = "polypath._core")]
#[derive(Debug)]
pub(crate) struct Identity {
    pub(super) inner: Inner,
}

#[pymethods]
impl Identity {
    #[new]
    fn new() -> PyResult<Self> {
        let inner = Inner::generate().map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Self { inner })
    }

    #[staticmethod]
    fn from_pem(text: &str) -> PyResult<Self> {
        let inner =
            Inner::from_pem(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { inner })
    }

    fn to_pem(&self) -> String {
        self.inner.to_pem()
    }

    #[getter]
    fn fingerprint(&self) -> String {
        self.inner.fingerprint().to_string()
    }
}

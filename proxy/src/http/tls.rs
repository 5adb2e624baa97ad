//! TLS towards servers: the system's certificates, HTTP/2 where the server offers it.

use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// What every connection to a server over TLS shares.
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the system's certificates, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    ///
    /// # Errors
    /// When there is none that can be used.
    pub(crate) fn load() -> io::Result<Self> {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!("certificates: {error}");
        }
        let mut roots = RootCertStore::empty();
        let (usable, _) = roots.add_parsable_certificates(found.certs);
        if usable == 0 {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "no trusted certificates on this system; install them (package ca-certificates) \
                 or name a file in SSL_CERT_FILE",
            ));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// For connections that speak HTTP/1.1 only.
    pub(super) fn http1(&self) -> TlsConnector {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsConnector::from(Arc::new(config))
    }

    pub(super) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.config))
    }

    /// One that offers no HTTP/2.
    pub(crate) fn connector_http1(&self) -> TlsConnector {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

//! Certificate and key: what is wrong with them, by which names they call us, and when they change. A certificate is renewed
//! every few weeks, by a program that knows nothing of us, so that the files are looked at while they are used.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use http::uri::Authority;
use tokio::sync::watch;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{self, ServerConfig};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Rights that nobody but owner and group may have on a key.
const OTHERS: u32 = 0o007;

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others can read the key.
    #[error("{} holds a private key and can be read by everybody", .0.display())]
    Exposed(PathBuf),
    /// There is no certificate in the file.
    #[error("there is no certificate in {}", .0.display())]
    NoCertificate(PathBuf),
    /// There is no private key in the file.
    #[error("there is no private key in {}", .0.display())]
    NoKey(PathBuf),
    /// The certificate cannot be understood, or names nobody.
    #[error("the certificate in {} {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Key and certificate are not of one pair.
    #[error("the key in {} is not that of the certificate in {}", key.display(), certificate.display())]
    Unpaired {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
}

impl IdentityError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { .. } => return None,
            Self::Exposed(path) => format!("close it with `chmod 600 {}`", path.display()),
            Self::NoCertificate(_) => "pass a PEM file with `BEGIN CERTIFICATE` in it".to_owned(),
            Self::NoKey(_) => "pass a PEM file with `BEGIN PRIVATE KEY` in it, without a password".to_owned(),
            Self::Unfit { .. } => {
                "renew it, or make one for the name that clients call this machine by".to_owned()
            }
            Self::Unpaired { .. } => "pass two files that were made together".to_owned(),
        })
    }
}

/// Certificate and key that are in use.
pub(crate) struct Identity {
    /// What a connection is made with.
    pub(crate) config: Arc<ServerConfig>,
    /// The names that the certificate has, as they stand in a URL; of all machines of a domain it has `*`.
    pub(crate) names: Vec<String>,
    own: CertificateDer<'static>,
    /// Seconds since 1970 from which on it is worth nothing.
    ends_at: i64,
}

impl Identity {
    fn read(certificate: &Path, key: &Path, now: SystemTime) -> Result<Self, IdentityError> {
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&bytes(certificate)?).filter_map(Result::ok).collect();
        let own =
            chain.first().cloned().ok_or_else(|| IdentityError::NoCertificate(certificate.to_owned()))?;
        let unfit = |why: String| IdentityError::Unfit { path: certificate.to_owned(), why };
        let (_, parsed) = X509Certificate::from_der(&own).map_err(|_| unfit("is damaged".to_owned()))?;
        let (names, ends_at) = (names(&parsed), parsed.validity().not_after.timestamp());
        let now = seconds(now);
        if ends_at < now {
            return Err(unfit(format!("expired on {}", parsed.validity().not_after)));
        }
        if parsed.validity().not_before.timestamp() > now {
            return Err(unfit(format!("is not valid before {}", parsed.validity().not_before)));
        }
        if names.is_empty() {
            return Err(unfit("has no name that a client could call this machine by".to_owned()));
        }
        let others = fs::metadata(key).map_err(|source| unreadable(key, source))?.mode() & OTHERS;
        if others != 0 {
            return Err(IdentityError::Exposed(key.to_owned()));
        }
        let private =
            PrivateKeyDer::from_pem_slice(&bytes(key)?).map_err(|_| IdentityError::NoKey(key.to_owned()))?;
        let config = configured(chain, private).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                IdentityError::Unpaired { key: key.to_owned(), certificate: certificate.to_owned() }
            }
            error => unfit(format!("cannot be used: {error}")),
        })?;
        Ok(Self { config: Arc::new(config), names, own, ends_at })
    }

    /// Whether a client calls us by a name of the certificate. Which port it named is its own affair: a router may lead
    /// to us from another one.
    pub(crate) fn is_our_name(&self, host: &[u8]) -> bool {
        let Ok(authority) = Authority::try_from(host) else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let bare = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let (Ok(name), Ok(own)) = (ServerName::try_from(bare), ParsedCertificate::try_from(&self.own)) else {
            return false;
        };
        verify_server_name(&own, &name).is_ok()
    }
}

/// The newest one of two files.
pub(crate) struct Identities {
    certificate: PathBuf,
    key: PathBuf,
    current: watch::Sender<Arc<Identity>>,
}

impl Identities {
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let read = Identity::read(certificate, key, SystemTime::now())?;
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self { certificate, key, current: watch::Sender::new(Arc::new(read)) })
    }

    pub(crate) fn current(&self) -> Arc<Identity> {
        self.current.borrow().clone()
    }

    /// Looks at the files for ever. What cannot be used is told once, and the last that could stays.
    pub(crate) async fn keep_up(&self) {
        let mut seen = self.stamps();
        let mut is_told_of_end = false;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.stamps();
            if now != seen {
                seen = now;
                match Identity::read(&self.certificate, &self.key, SystemTime::now()) {
                    Ok(newer) => {
                        tracing::info!(certificate = %self.certificate.display(), "a new certificate is in use");
                        self.current.send_replace(Arc::new(newer));
                        is_told_of_end = false;
                    }
                    Err(error) => tracing::warn!(%error, "the earlier certificate stays in use"),
                }
            }
            if !is_told_of_end && self.current().ends_at < seconds(SystemTime::now()) {
                is_told_of_end = true;
                tracing::error!(certificate = %self.certificate.display(), "the certificate has expired; renew it");
            }
        }
    }

    /// What tells whether the files are others than before.
    fn stamps(&self) -> [Option<(SystemTime, u64, u64)>; 2] {
        [&self.certificate, &self.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
        })
    }
}

fn configured(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config =
        builder.with_safe_default_protocol_versions()?.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(alternatives)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = alternatives.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(|bytes| std::net::Ipv4Addr::from(bytes).to_string());
            let six =
                || <[u8; 16]>::try_from(*bytes).map(|bytes| format!("[{}]", std::net::Ipv6Addr::from(bytes)));
            four.or_else(|_| six()).ok()
        }
        _ => None,
    });
    names.collect()
}

fn bytes(path: &Path) -> Result<Vec<u8>, IdentityError> {
    fs::read(path).map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: io::Error) -> IdentityError {
    IdentityError::Unreadable { path: path.to_owned(), source }
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rcgen::{CertificateParams, KeyPair};
    use tempfile::TempDir;

    use super::*;

    /// A folder with `cert.pem` and `key.pem`.
    fn made(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        fs::write(folder.path().join("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        close(&folder, 0o600);
        folder
    }

    fn close(folder: &TempDir, mode: u32) {
        fs::set_permissions(folder.path().join("key.pem"), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn read(folder: &TempDir) -> Result<Identity, IdentityError> {
        Identity::read(&folder.path().join("cert.pem"), &folder.path().join("key.pem"), SystemTime::now())
    }

    fn refused(folder: &TempDir) -> String {
        let error = read(folder).err().unwrap();
        assert!(error.hint().is_some() || matches!(error, IdentityError::Unreadable { .. }), "{error}");
        error.to_string().replace(&folder.path().display().to_string(), "")
    }

    #[test]
    fn only_names_of_the_certificate_are_ours() {
        let folder = made(&["build.example", "*.lab.example", "127.0.0.1", "::1"], |_| {});
        let identity = read(&folder).unwrap();
        assert_eq!(identity.names, ["build.example", "*.lab.example", "127.0.0.1", "[::1]"]);
        for ours in [
            "build.example",
            "build.example:8443",
            "BUILD.example:1",
            "a.lab.example",
            "127.0.0.1:8443",
            "[::1]:8443",
        ] {
            assert!(identity.is_our_name(ours.as_bytes()), "{ours}");
        }
        let others = "evil.example build.example.evil.example lab.example a.b.lab.example 127.0.0.2 [::2]:8443 \
                      user@build.example build.example@evil.example localhost";
        for other in others.split(' ').chain(["", " ", "build.example/", "build.example, evil.example"]) {
            assert!(!identity.is_our_name(other.as_bytes()), "{other:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        let expired = made(&["a.example"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
        assert!(
            refused(&expired).starts_with("the certificate in /cert.pem expired on Jan  1 00:00:00 2020")
        );
        let early = made(&["a.example"], |params| params.not_before = rcgen::date_time_ymd(2999, 1, 1));
        assert!(refused(&early).starts_with("the certificate in /cert.pem is not valid before Jan  1"));
        let nameless = made(&[], |_| {});
        assert!(refused(&nameless).contains("has no name that a client could call"));
        let good = made(&["a.example"], |_| {});
        close(&good, 0o644);
        assert_eq!(refused(&good), "/key.pem holds a private key and can be read by everybody");
        close(&good, 0o640);
        assert!(read(&good).is_ok());
        let other = made(&["a.example"], |_| {});
        fs::copy(other.path().join("key.pem"), good.path().join("key.pem")).unwrap();
        assert_eq!(refused(&good), "the key in /key.pem is not that of the certificate in /cert.pem");
        fs::write(good.path().join("key.pem"), "x").unwrap();
        assert_eq!(refused(&good), "there is no private key in /key.pem");
        fs::remove_file(good.path().join("key.pem")).unwrap();
        assert_eq!(refused(&good), "cannot read /key.pem");
        fs::write(good.path().join("cert.pem"), "x").unwrap();
        assert_eq!(refused(&good), "there is no certificate in /cert.pem");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
        let folder = made(&["a.example"], |_| {});
        let paths = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
        let identities = Identities::read(&paths[0], &paths[1]).unwrap();
        let renewed = made(&["b.example"], |_| {});
        let steps = async {
            tokio::time::sleep(LOOK_EVERY / 2).await;
            fs::write(&paths[0], "broken").unwrap();
            tokio::time::sleep(LOOK_EVERY).await;
            assert_eq!(identities.current().names, ["a.example"]);
            fs::copy(renewed.path().join("key.pem"), &paths[1]).unwrap();
            fs::copy(renewed.path().join("cert.pem"), &paths[0]).unwrap();
            tokio::time::sleep(LOOK_EVERY).await;
            assert_eq!(identities.current().names, ["b.example"]);
        };
        tokio::select! {
            () = identities.keep_up() => {}
            () = steps => {}
        }
    }
}

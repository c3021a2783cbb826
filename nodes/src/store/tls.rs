//! What TLS connections need of the process and of the system.

/// Chooses the cryptography of TLS connections. It is the process's own, by the library's design; whoever was first stays.
pub(super) fn install() {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Whether the system has certificates of authorities. Where there are none, as in the smallest containers, clients are
/// made without any: plain `http` has to work there, and `https` says what is missing when it connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authorities {
    Known,
    None,
}

impl Authorities {
    pub(super) fn of_system() -> Self {
        install();
        match reqwest::Client::builder().build() {
            Ok(_) => Authorities::Known,
            Err(_) => Authorities::None,
        }
    }
}

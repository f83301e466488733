//! Seals secrets before they are stored: a secret and the subscription it belongs to come in, a text that only the
//! holder of the key can open goes out, and back.
//!
//! The key comes from the configuration (`auth.secret-key`) or from a file beside the data, which is drawn on the
//! first start. A copy of the database without the key opens nothing.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flare_model::ids::SubscriptionId;
use flare_model::subscription::Secret;
use parking_lot::Mutex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use crate::config::{Config, KEY_BYTES, Store, parse_key};
use crate::door::Entropy;

/// Why a key could not be had.
#[derive(Debug, thiserror::Error)]
pub enum NoKey {
    /// The file could not be read or written.
    #[error("the key that seals secrets, in {path} (auth.secret-key-file says where)")]
    File {
        /// Where it should be.
        path: PathBuf,
        /// What the machine says.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error(
        "{path} is not a key that seals secrets: it should be the base64 of {KEY_BYTES} bytes, on one line"
    )]
    Form {
        /// Where it is.
        path: PathBuf,
    },
}

/// Why a sealed secret stays closed.
#[derive(Debug, thiserror::Error)]
pub enum Closed {
    /// Another key sealed it.
    #[error(
        "it was sealed with key {sealed_with} and the present key is {present}: put the former key back \
         (auth.secret-key, or the file that auth.secret-key-file names), or, if it is lost, start with \
         auth.discard-lost-secrets = true and rotate the secrets"
    )]
    OtherKey {
        /// The fingerprint of the key that sealed it.
        sealed_with: String,
        /// The fingerprint of ours.
        present: String,
    },
    /// It is not what was sealed for this subscription.
    #[error("it was changed in the store, or belongs to another subscription")]
    Damaged,
}

/// Holds the key. Its `Debug` shows the fingerprint alone.
pub struct Vault {
    key: LessSafeKey,
    /// Tells keys apart, and nothing about them.
    fingerprint: String,
    /// For nonces.
    entropy: Entropy,
    /// The key's own file, until it is noted there that it has sealed something.
    unmarked: Mutex<Option<PathBuf>>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({})", self.fingerprint)
    }
}

impl Vault {
    /// With the key that the configuration gives or names.
    pub fn open(config: &Config, entropy: &Entropy) -> Result<Vault, NoKey> {
        if let Some(key) = config.auth.secret_key.reveal() {
            return Ok(Vault::new(key, entropy.clone()));
        }
        if config.provider.store == Store::Memory {
            // Nothing that it seals outlives the process.
            return Ok(Vault::new(&entropy.bytes(), entropy.clone()));
        }
        let path = config.provider.embedded.path.join(&config.auth.secret_key_file);
        let failed = |source| NoKey::File { path: path.clone(), source };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                draw(&path, entropy).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        let first = text.lines().next().unwrap_or_default();
        let key = parse_key(first.trim()).ok_or_else(|| NoKey::Form { path: path.clone() })?;
        let vault = Vault::new(&key, entropy.clone());
        let unmarked = (!is_marked(&text)).then_some(path);
        Ok(Vault { unmarked: Mutex::new(unmarked), ..vault })
    }

    fn new(key: &[u8; KEY_BYTES], entropy: Entropy) -> Vault {
        let digest = Sha256::new_with_prefix("flare sealing key ").chain_update(key).finalize();
        let fingerprint = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).expect("the key has the length of the algorithm");
        Vault { key: LessSafeKey::new(key), fingerprint, entropy, unmarked: Mutex::new(None) }
    }

    /// Whether the key that the configuration names lies in a file and has sealed something. Then a store that never had
    /// a subscription is not the one that it belongs to.
    pub fn has_sealed(config: &Config) -> bool {
        let path = config.provider.embedded.path.join(&config.auth.secret_key_file);
        let is_own = config.auth.secret_key.reveal().is_none() && config.provider.store != Store::Memory;
        is_own && std::fs::read_to_string(path).is_ok_and(|text| is_marked(&text))
    }

    /// Encrypts a secret; only for this subscription it can be opened again. The first time that is noted in the key's
    /// own file.
    pub fn seal(&self, subscription: &SubscriptionId, secret: &Secret) -> String {
        if let Some(path) = self.unmarked.lock().take()
            && let Err(error) = mark(&path)
        {
            // It is for the operator's own good; everything works without it.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the key's file could not be marked as used"
            );
        }
        // Drawn, not counted: some secrets per subscription are far from where 96 bits would meet by chance.
        let nonce: [u8; NONCE_LEN] = self.entropy.bytes();
        let mut sealed = secret.bytes().to_vec();
        let aad = Aad::from(subscription.as_str().as_bytes());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .expect("a secret is short");
        let body = STANDARD.encode([&nonce[..], &sealed].concat());
        format!("1.{}.{body}", self.fingerprint)
    }

    /// Decrypts what [`Vault::seal`] gave for this subscription.
    pub fn unseal(&self, subscription: &SubscriptionId, sealed: &str) -> Result<Secret, Closed> {
        let mut parts = sealed.splitn(3, '.');
        let (Some("1"), Some(fingerprint), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Closed::Damaged);
        };
        if fingerprint != self.fingerprint {
            let present = self.fingerprint.clone();
            return Err(Closed::OtherKey { sealed_with: fingerprint.to_owned(), present });
        }
        let mut body = STANDARD.decode(body).map_err(|_| Closed::Damaged)?;
        let (nonce, sealed) = body.split_at_mut_checked(NONCE_LEN).ok_or(Closed::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Closed::Damaged)?;
        let aad = Aad::from(subscription.as_str().as_bytes());
        let opened = self.key.open_in_place(nonce, aad, sealed).map_err(|_| Closed::Damaged)?;
        Secret::from_bytes(opened).ok_or(Closed::Damaged)
    }
}

/// Stands below a key that has sealed something.
const MARK: &str = "# has sealed secrets of the database beside it";

fn is_marked(text: &str) -> bool {
    text.lines().any(|line| line.trim() == MARK)
}

fn mark(path: &Path) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(format!("{MARK}\n").as_bytes())?;
    file.sync_all()
}

/// Writes a new key where there is none, for its owner alone. It is on stable storage before anything is sealed with
/// it: a crash must not leave secrets that nothing opens.
fn draw(path: &Path, entropy: &Entropy) -> std::io::Result<String> {
    let text = STANDARD.encode(entropy.bytes::<KEY_BYTES>());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = path.with_extension("unfinished");
    let _ = std::fs::remove_file(&unfinished);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    std::fs::File::open(folder)?.sync_all()?;
    tracing::info!(path = %path.display(), "a key that seals secrets was drawn; backups need it");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn secret() -> Secret {
        Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_key_for_the_same_subscription_only() {
        let vault = Vault::new(&[1; 32], Entropy::of_machine());
        let (mine, other) = (SubscriptionId::new("sub_1"), SubscriptionId::new("sub_2"));
        let sealed = vault.seal(&mine, &secret());
        assert_ne!(sealed, vault.seal(&mine, &secret()), "a nonce is never used twice");
        assert_eq!(vault.unseal(&mine, &sealed).unwrap(), secret());
        assert!(matches!(vault.unseal(&other, &sealed), Err(Closed::Damaged)));
        assert!(matches!(
            Vault::new(&[2; 32], Entropy::of_machine()).unseal(&mine, &sealed),
            Err(Closed::OtherKey { .. })
        ));
        let mut changed = sealed.clone().into_bytes();
        let last = changed.len() - 5;
        changed[last] = if changed[last] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(matches!(vault.unseal(&mine, &changed), Err(Closed::Damaged)));
        for nonsense in ["", "1..", "2.x.y", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert!(vault.unseal(&mine, nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_key_is_drawn_once_and_readable_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.provider.embedded.path = folder.path().to_owned();
        let sealed = Vault::open(&config, &Entropy::of_machine())
            .unwrap()
            .seal(&SubscriptionId::new("sub_1"), &secret());
        let path = folder.path().join("secret.key");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Vault::open(&config, &Entropy::of_machine()).unwrap();
        assert_eq!(again.unseal(&SubscriptionId::new("sub_1"), &sealed).unwrap(), secret());
        std::fs::write(&path, "nonsense").unwrap();
        assert!(matches!(Vault::open(&config, &Entropy::of_machine()), Err(NoKey::Form { .. })));
    }
}

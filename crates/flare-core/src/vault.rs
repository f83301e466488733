//! Seals secrets before they are stored: a secret and the subscription it belongs to come in, a text that only the
//! holder of the key can open goes out, and back.
//!
//! The key comes from the configuration (`auth.secret-key`) or from a file beside the data, which is drawn on the
//! first start. A copy of the database without the key opens nothing. While keys are rotated there is a former one as
//! well: it opens, and seals nothing.

mod file;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flare_model::ids::SubscriptionId;
use flare_model::subscription::Secret;
use parking_lot::Mutex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use sha2::{Digest, Sha256};

use crate::config::{Config, KEY_BYTES, Store};
use crate::door::Entropy;

pub use file::{KeyFile, path as key_path};

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
    key: Key,
    /// Opens what was sealed before the key was rotated.
    former: Option<Key>,
    /// Tells urls apart in the store, without telling them.
    urls: hmac::Key,
    /// For nonces.
    entropy: Entropy,
    /// The key's own file, until it is noted there that it has sealed something.
    unmarked: Mutex<Option<PathBuf>>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({})", self.key.fingerprint)
    }
}

/// What seals and opens.
struct Key {
    cipher: LessSafeKey,
    /// Tells keys apart, and nothing about them.
    fingerprint: String,
}

impl Key {
    fn new(key: &[u8; KEY_BYTES]) -> Key {
        let digest = Sha256::new_with_prefix("flare sealing key ").chain_update(key).finalize();
        let fingerprint = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).expect("the key has the length of the algorithm");
        Key { cipher: LessSafeKey::new(key), fingerprint }
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
        let path = file::path(config);
        let KeyFile { key, former, is_marked } = KeyFile::read_or_draw(&path, entropy)?;
        let vault = Vault::new(&key, entropy.clone());
        let unmarked = (!is_marked).then_some(path);
        let former = former.as_ref().map(Key::new);
        Ok(Vault { unmarked: Mutex::new(unmarked), former, ..vault })
    }

    /// With this key.
    pub fn new(key: &[u8; KEY_BYTES], entropy: Entropy) -> Vault {
        let urls = hmac::Key::new(hmac::HMAC_SHA256, key);
        let urls = hmac::sign(&urls, b"flare urls with credentials");
        Vault {
            key: Key::new(key),
            former: None,
            urls: hmac::Key::new(hmac::HMAC_SHA256, urls.as_ref()),
            entropy,
            unmarked: Mutex::new(None),
        }
    }

    /// The same, which opens what another key has sealed as well.
    pub fn with_former(self, former: &[u8; KEY_BYTES]) -> Vault {
        Vault { former: Some(Key::new(former)), ..self }
    }

    /// What tells its key from others, and nothing about it.
    pub fn fingerprint(&self) -> &str {
        &self.key.fingerprint
    }

    /// Whether the key that the configuration names lies in a file and has sealed something. Then a store that never had
    /// a subscription is not the one that it belongs to.
    pub fn has_sealed(config: &Config) -> bool {
        let is_own = config.auth.secret_key.reveal().is_none() && config.provider.store != Store::Memory;
        is_own && KeyFile::read(&file::path(config)).is_ok_and(|file| file.is_some_and(|file| file.is_marked))
    }

    /// Encrypts a secret; only for this subscription it can be opened again. The first time that is noted in the key's
    /// own file.
    pub fn seal(&self, subscription: &SubscriptionId, secret: &Secret) -> String {
        self.seal_bytes(subscription.as_str().as_bytes(), secret.bytes())
    }

    /// Decrypts what [`Vault::seal`] gave for this subscription.
    pub fn unseal(&self, subscription: &SubscriptionId, sealed: &str) -> Result<Secret, Closed> {
        let opened = self.unseal_bytes(subscription.as_str().as_bytes(), sealed)?;
        Secret::from_bytes(&opened).ok_or(Closed::Damaged)
    }

    /// Encrypts the endpoint of a subscription, as JSON.
    pub fn seal_endpoint(&self, subscription: &SubscriptionId, endpoint: &str) -> String {
        self.seal_bytes(format!("{subscription} endpoint").as_bytes(), endpoint.as_bytes())
    }

    /// Decrypts what [`Vault::seal_endpoint`] gave for this subscription.
    pub fn unseal_endpoint(&self, subscription: &SubscriptionId, sealed: &str) -> Result<String, Closed> {
        let opened = self.unseal_bytes(format!("{subscription} endpoint").as_bytes(), sealed)?;
        String::from_utf8(opened).map_err(|_| Closed::Damaged)
    }

    /// Whether the present key has sealed this.
    pub fn is_of_present_key(&self, sealed: &str) -> bool {
        sealed.split('.').nth(1) == Some(self.key.fingerprint.as_str())
    }

    /// The same for equal urls, and nothing that tells them to whoever has not the key.
    pub fn name_of_url(&self, url: &str) -> String {
        let tag = hmac::sign(&self.urls, url.as_bytes());
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn seal_bytes(&self, aad: &[u8], bytes: &[u8]) -> String {
        if let Some(path) = self.unmarked.lock().take()
            && let Err(error) = file::mark(&path)
        {
            // It is for the operator's own good; everything works without it.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the key's file could not be marked as used"
            );
        }
        // Drawn, not counted: some secrets per subscription are far from where 96 bits would meet by chance.
        let nonce: [u8; NONCE_LEN] = self.entropy.bytes();
        let mut sealed = bytes.to_vec();
        self.key
            .cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), &mut sealed)
            .expect("a secret is short");
        let body = STANDARD.encode([&nonce[..], &sealed].concat());
        format!("1.{}.{body}", self.key.fingerprint)
    }

    fn unseal_bytes(&self, aad: &[u8], sealed: &str) -> Result<Vec<u8>, Closed> {
        let mut parts = sealed.splitn(3, '.');
        let (Some("1"), Some(fingerprint), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Closed::Damaged);
        };
        let mut keys = [Some(&self.key), self.former.as_ref()].into_iter().flatten();
        let Some(key) = keys.find(|key| key.fingerprint == fingerprint) else {
            let present = self.key.fingerprint.clone();
            return Err(Closed::OtherKey { sealed_with: fingerprint.to_owned(), present });
        };
        let mut body = STANDARD.decode(body).map_err(|_| Closed::Damaged)?;
        let (nonce, sealed) = body.split_at_mut_checked(NONCE_LEN).ok_or(Closed::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Closed::Damaged)?;
        let opened = key.cipher.open_in_place(nonce, Aad::from(aad), sealed).map_err(|_| Closed::Damaged)?;
        Ok(opened.to_vec())
    }
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
    fn a_former_key_opens_and_seals_nothing() {
        let id = SubscriptionId::new("sub_1");
        let former = Vault::new(&[1; 32], Entropy::of_machine());
        let (sealed, endpoint) = (former.seal(&id, &secret()), former.seal_endpoint(&id, "{}"));
        let both = Vault::new(&[2; 32], Entropy::of_machine()).with_former(&[1; 32]);
        assert_eq!(both.unseal(&id, &sealed).unwrap(), secret());
        assert_eq!(both.unseal_endpoint(&id, &endpoint).unwrap(), "{}");
        assert!(both.unseal(&id, &endpoint).is_err(), "one thing is not taken for another");
        let anew = both.seal(&id, &secret());
        assert!(both.is_of_present_key(&anew) && !both.is_of_present_key(&sealed));
        assert!(matches!(former.unseal(&id, &anew), Err(Closed::OtherKey { .. })));
        assert_eq!(both.name_of_url("a"), both.name_of_url("a"));
        assert_ne!(both.name_of_url("a"), former.name_of_url("a"), "nobody without the key can tell");
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

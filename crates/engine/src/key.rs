//! [`Key`]: what signs certificates.
//!
//! The secret is a file that only its owner may read (mode 0600), made on first use; the public half stands in the ledger,
//! so a certificate can be checked against the chain. A new key is introduced by [`rotate`](Key::rotate); the old file is kept
//! beside it under the name of its public half, and certificates it signed stay valid.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use demur_ledger::Hash;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::EngineError;

/// A signing key.
pub struct Key {
    secret: SigningKey,
}

const HEAD: &str = "demur key 1 ";

impl Key {
    /// The key in this file; a new one if there is none.
    pub fn at(path: &Path) -> Result<Self, EngineError> {
        match Self::read(path) {
            Ok(key) => Ok(key),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::make(path),
            Err(error) => Err(failed(path, "read", &error)),
        }
    }

    /// A new key in this file; the one before is kept beside it.
    pub fn rotate(path: &Path) -> Result<Self, EngineError> {
        if let Ok(old) = Self::read(path) {
            let name = format!("{}.{}", path.display(), &old.public().to_string()[..16]);
            std::fs::rename(path, PathBuf::from(name)).map_err(|error| failed(path, "kept", &error))?;
        }
        Self::make(path)
    }

    /// The public half.
    pub fn public(&self) -> Hash {
        // 32 bytes by construction.
        Hash::from_bytes(self.secret.verifying_key().as_bytes()).unwrap_or(Hash::START)
    }

    /// The signature of a text, in hexadecimal digits.
    pub(crate) fn sign(&self, text: &[u8]) -> String {
        self.secret.sign(text).to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn make(path: &Path) -> Result<Self, EngineError> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice()).map_err(|error| {
            EngineError::new("engine.entropy", format!("no randomness for a key: {error}"))
        })?;
        let secret = SigningKey::from_bytes(&bytes);
        let digits: Zeroizing<String> =
            Zeroizing::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
        let line = Zeroizing::new(format!("{HEAD}{}\n", digits.as_str()));
        // Whole or not at all: two who make it at once end up with one key.
        let draft = PathBuf::from(format!("{}.{}.new", path.display(), std::process::id()));
        let written = private_file(&draft)
            .and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::hard_link(&draft, path));
        let _ = std::fs::remove_file(&draft);
        match written {
            Ok(()) => Ok(Self { secret }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Self::read(path).map_err(|error| failed(path, "read", &error))
            }
            Err(error) => Err(failed(path, "written", &error)),
        }
    }

    fn read(path: &Path) -> std::io::Result<Self> {
        let mut text = Zeroizing::new(String::new());
        File::open(path)?.take(200).read_to_string(&mut text)?;
        let digits = text.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix('\n'));
        let bytes = digits.and_then(|digits| digits.parse::<Hash>().ok());
        let bytes = bytes.ok_or_else(|| std::io::Error::other("it is not a key of demur"))?;
        Ok(Self { secret: SigningKey::from_bytes(bytes.bytes()) })
    }
}

/// Whether the text was signed by the owner of the key.
pub(crate) fn verifies(public: &Hash, text: &[u8], signature: &str) -> bool {
    let byte =
        |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = signature.as_bytes().chunks(2).map(byte).collect();
    let lower = signature.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let signature = bytes.filter(|_| lower).and_then(|bytes| Signature::from_slice(&bytes).ok());
    let key = VerifyingKey::from_bytes(public.bytes()).ok();
    matches!((key, signature), (Some(key), Some(signature)) if key.verify_strict(text, &signature).is_ok())
}

fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> EngineError {
    EngineError::new("engine.key", format!("the signing key {} could not be {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db.key");
        let key = Key::at(&path).unwrap();
        assert_eq!(Key::at(&path).unwrap().public(), key.public());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_key_keeps_the_old_one_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let old = Key::at(&path).unwrap();
        let new = Key::rotate(&path).unwrap();
        assert_ne!(old.public(), new.public());
        assert_eq!(Key::at(&path).unwrap().public(), new.public());
        let kept = folder.path().join(format!("key.{}", &old.public().to_string()[..16]));
        assert_eq!(Key::at(&kept).unwrap().public(), old.public());
    }

    #[test]
    fn a_signature_holds_for_its_text_and_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::at(&folder.path().join("a")).unwrap();
        let other = Key::at(&folder.path().join("b")).unwrap();
        let signature = key.sign(b"text");
        assert!(verifies(&key.public(), b"text", &signature));
        assert!(!verifies(&key.public(), b"texts", &signature));
        assert!(!verifies(&other.public(), b"text", &signature));
        for broken in ["", "00", &signature[2..], &signature.to_uppercase(), &format!("{signature}00"), "+1é"]
        {
            assert!(!verifies(&key.public(), b"text", broken), "{broken}");
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "hello").unwrap();
        let Err(error) = Key::at(&path) else { panic!("a key from nothing") };
        assert!(error.to_string().ends_with("could not be read: it is not a key of demur"), "{error}");
    }
}

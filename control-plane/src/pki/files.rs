//! Reading and writing key material.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use pem::Pem;

use super::PkiError;

/// More than any chain of certificates needs.
const MAX_FILE_BYTES: u64 = 1 << 20;

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> PkiError + '_ {
    move |source| PkiError::Io {
        path: path.into(),
        source,
    }
}

/// Creates a directory that only its owner may enter, with its parents.
pub fn private_directory(path: &Path) -> Result<(), PkiError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(io(path))
}

/// Replaces a file in one step; only its owner may read it. A crash leaves the old one or the new one.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), PkiError> {
    let directory = path
        .parent()
        .ok_or_else(|| PkiError::file(path, "not a path of a file"))?;
    let mut name = path
        .file_name()
        .ok_or_else(|| PkiError::file(path, "not a path of a file"))?
        .to_owned();
    name.push(".new");
    let temporary = directory.join(name);
    // Left by a crash; its content is nobody's.
    match fs::remove_file(&temporary) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(io(&temporary)(error)),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(io(&temporary))?;
    file.write_all(content).map_err(io(&temporary))?;
    file.sync_all().map_err(io(&temporary))?;
    fs::rename(&temporary, path).map_err(io(path))?;
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(io(directory))
}

/// `None`: there is no such file.
pub fn read_if_there(path: &Path) -> Result<Option<String>, PkiError> {
    let size = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(path)(error)),
    };
    if size > MAX_FILE_BYTES {
        return Err(PkiError::file(
            path,
            format!("larger than {MAX_FILE_BYTES} bytes"),
        ));
    }
    fs::read_to_string(path).map(Some).map_err(io(path))
}

pub fn read(path: &Path) -> Result<String, PkiError> {
    read_if_there(path)?.ok_or_else(|| io(path)(ErrorKind::NotFound.into()))
}

fn blocks(path: &Path, text: &str) -> Result<Vec<Pem>, PkiError> {
    pem::parse_many(text).map_err(|error| PkiError::file(path, format!("not PEM: {error}")))
}

/// All certificates of a PEM file, in DER; at least one.
pub fn certificates(path: &Path, text: &str) -> Result<Vec<Vec<u8>>, PkiError> {
    let certificates: Vec<_> = blocks(path, text)?
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(Pem::into_contents)
        .collect();
    if certificates.is_empty() {
        return Err(PkiError::file(path, "holds no CERTIFICATE block"));
    }
    Ok(certificates)
}

/// The private key of a PEM file, in DER. Other blocks (`EC PARAMETERS`) may stand before it.
pub fn private_key(path: &Path, text: &str) -> Result<Vec<u8>, PkiError> {
    let key = blocks(path, text)?
        .into_iter()
        .find(|block| block.tag().ends_with("PRIVATE KEY"))
        .ok_or_else(|| PkiError::file(path, "holds no PRIVATE KEY block"))?;
    if key.tag() == "ENCRYPTED PRIVATE KEY" {
        return Err(PkiError::file(
            path,
            "the private key is encrypted; a plain one is needed",
        ));
    }
    Ok(key.into_contents())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn files_are_private_and_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("pki");
        private_directory(&inner).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o700);
        let path = inner.join("x.key");
        fs::write(inner.join("x.key.new"), "left by a crash").unwrap();
        for content in ["one", "two"] {
            write_private(&path, content.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap(), content);
            assert_eq!(mode(&path), 0o600);
        }
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
    }

    #[test]
    fn what_is_wrong_names_the_file_and_shows_nothing_of_it() {
        let path = Path::new("some.pem");
        let key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for (outcome, expected) in [
            (
                certificates(path, "").map(drop),
                "some.pem: holds no CERTIFICATE block",
            ),
            (
                private_key(path, "").map(drop),
                "some.pem: holds no PRIVATE KEY block",
            ),
            (
                private_key(path, key).map(drop),
                "some.pem: the private key is encrypted; a plain one is needed",
            ),
        ] {
            assert_eq!(outcome.unwrap_err().to_string(), expected);
        }
        let broken = certificates(
            path,
            "-----BEGIN CERTIFICATE-----\nc2Vjc*mV0\n-----END CERTIFICATE-----\n",
        )
        .unwrap_err()
        .to_string();
        assert!(
            broken.starts_with("some.pem: not PEM") && !broken.contains("c2Vjc"),
            "{broken}"
        );
    }
}

//! Where the identity is kept: files that only the agent may read, or a Secret in the member.

use std::{io, path::Path, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Identity, IdentityError};
use crate::transport::Caller;

/// The control plane's CA.
const AUTHORITY: &str = "ca.crt";
/// Key and certificate in one, so that they are replaced together.
const CLIENT: &str = "client.pem";

/// One of the two places.
#[derive(Clone)]
pub enum Store {
    Directory(PathBuf),
    Secret {
        member: Caller,
        namespace: String,
        name: String,
    },
}

impl Store {
    fn place(&self) -> String {
        match self {
            Self::Directory(directory) => directory.display().to_string(),
            Self::Secret {
                namespace, name, ..
            } => format!("Secret {namespace}/{name}"),
        }
    }

    fn failed(&self, cause: &dyn std::fmt::Display) -> IdentityError {
        IdentityError::Store {
            place: self.place(),
            cause: cause.to_string(),
        }
    }

    /// `None`: there is none yet.
    pub async fn load(&self, cluster: &str) -> Result<Option<Identity>, IdentityError> {
        let parts = match self {
            Self::Directory(directory) => {
                let read = |name: &str| read_if_there(directory.join(name));
                let (authority, client) = tokio::try_join!(read(AUTHORITY), read(CLIENT))
                    .map_err(|error| self.failed(&error))?;
                authority.zip(client)
            }
            Self::Secret {
                member,
                namespace,
                name,
            } => {
                let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
                let secret: Option<Value> = member
                    .find(&path)
                    .await
                    .map_err(|failure| self.failed(&failure))?;
                let part = |secret: &Value, key: &str| {
                    let text = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
                    String::from_utf8(text).ok().filter(|text| !text.is_empty())
                };
                secret.and_then(|secret| part(&secret, AUTHORITY).zip(part(&secret, CLIENT)))
            }
        };
        parts
            .map(|(authority, client)| Identity::new(authority, client, cluster))
            .transpose()
    }

    /// All or nothing, per file.
    pub async fn save(&self, identity: &Identity) -> Result<(), IdentityError> {
        match self {
            Self::Directory(directory) => {
                let directory = directory.clone();
                let identity = identity.clone();
                let write = tokio::task::spawn_blocking(move || {
                    create_private(&directory)?;
                    replace(&directory.join(AUTHORITY), identity.authority.as_bytes())?;
                    replace(&directory.join(CLIENT), identity.client.as_bytes())
                });
                match write.await {
                    Ok(written) => written.map_err(|error| self.failed(&error)),
                    Err(error) => Err(self.failed(&error)),
                }
            }
            Self::Secret {
                member,
                namespace,
                name,
            } => {
                let path = format!("/api/v1/namespaces/{namespace}/secrets");
                let data = json!({
                    AUTHORITY: STANDARD.encode(&identity.authority),
                    CLIENT: STANDARD.encode(&identity.client),
                });
                let patch = json!({ "data": data });
                let secret = json!({
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": { "name": name },
                    "type": "Opaque",
                    "data": data,
                });
                let own = format!("{path}/{name}");
                let written = match member.merge::<_, Value>(&own, &patch).await {
                    Err(failure) if failure.is_not_found() => {
                        member.create::<_, Value>(&path, &secret).await
                    }
                    written => written,
                };
                written.map(drop).map_err(|failure| self.failed(&failure))
            }
        }
    }
}

async fn read_if_there(path: PathBuf) -> io::Result<Option<String>> {
    match tokio::fs::read_to_string(&path).await {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Writes beside the file and renames: a reader sees the old text or the new one.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let beside = path.with_extension("new");
    // One that a crash left behind may have other permissions.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    if let Some(directory) = path.parent() {
        std::fs::File::open(directory)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_directory_keeps_the_identity_to_itself() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("a/b");
        let store = Store::Directory(directory.clone());
        assert_eq!(store.load("m1").await.unwrap(), None);
        let first = super::super::tests::identity("m1", 1, 2).unwrap();
        let second = super::super::tests::identity("m1", 3, 4).unwrap();
        store.save(&first).await.unwrap();
        assert_eq!(store.load("m1").await.unwrap(), Some(first));
        std::fs::write(directory.join("client.new"), "left behind").unwrap();
        store.save(&second).await.unwrap();
        assert_eq!(store.load("m1").await.unwrap(), Some(second));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory.join(CLIENT)), 0o600);
        assert_eq!(mode(&directory.join(AUTHORITY)), 0o600);
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
    }
}

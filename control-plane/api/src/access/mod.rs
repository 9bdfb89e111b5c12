//! Who asks, and whether they may. Authenticators and authorizers answer from memory and never wait.
//!
//! - [`certificate`], [`bootstrap`], [`statictoken`]: authenticators
//! - [`masters`], [`rbac`]: authorizers
//! - [`reviews`]: the kinds by which clients ask
//! - [`chain`]: several of each in a row
//! - [`denial`]: the text of a 403
//! - [`token`]: secrets that are compared and never shown

pub mod bootstrap;
pub mod certificate;
pub mod chain;
pub mod denial;
pub mod masters;
pub mod rbac;
pub mod reviews;
pub mod statictoken;
pub mod token;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

/// The wall clock of the shell that assembles a server.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// An authenticated identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|member| member == group)
    }
}

/// Who nobody is.
pub const ANONYMOUS: &str = "system:anonymous";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const AUTHENTICATED: &str = "system:authenticated";
/// May do everything.
pub const MASTERS: &str = "system:masters";

/// What a connection and a request bring to prove an identity.
pub struct Credentials<'a> {
    /// The client certificate in DER, already verified against the server's CA by TLS.
    pub certificate: Option<&'a [u8]>,
    /// The token of `Authorization: Bearer`.
    pub bearer: Option<&'a str>,
}

/// A credential was given and is not good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCredential(pub String);

pub trait Authenticator: Send + Sync {
    /// `None`: this authenticator knows nothing of the credentials given; the next one is asked, and at the end the
    /// request is anonymous.
    fn authenticate(
        &self,
        credentials: &Credentials<'_>,
    ) -> Result<Option<UserInfo>, BadCredential>;
}

/// What is asked for, in the words of RBAC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for paths the lower-case
    /// method.
    pub verb: String,
    pub group: String,
    pub version: String,
    /// Plural; empty for a request that names no resource.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Set when `resource` is empty (`/healthz`).
    pub path: String,
    /// A list or watch limited to one object by `fieldSelector=metadata.name=…` carries that name in `name`.
    pub label_selector: Option<String>,
    pub field_selector: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// Ask the next one; denied when nobody allows.
    NoOpinion,
    /// Denied whatever others would say; the reason is shown to the client.
    Deny(String),
}

pub trait Authorizer: Send + Sync {
    fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Decision;

    /// Why [`authorize`](Self::authorize) allows this, for access reviews. Empty: nothing worth saying.
    fn why_allowed(&self, _user: &UserInfo, _attributes: &Attributes) -> String {
        String::new()
    }

    /// What a user may in a namespace, as far as rules can say it.
    fn rules(&self, _user: &UserInfo, _namespace: &str) -> Rules {
        Rules::default()
    }
}

/// What a user may, as a list of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub rules: Vec<rbac::PolicyRule>,
    /// Why these rules are not the whole truth.
    pub incomplete: Option<String>,
}

/// Looks at every write before it is made and may refuse it, or change it. Sees old and new state (`None`: absent).
pub trait Admission: Send + Sync {
    fn admit(
        &self,
        user: &UserInfo,
        attributes: &Attributes,
        old: Option<&serde_json::Value>,
        new: Option<&mut serde_json::Value>,
    ) -> Result<(), crate::failure::Failure>;
}

/// Is told of every request that was served: who, what, and the status code. For heartbeats and audit. Runs on the
/// request's task and must not block.
pub trait Observer: Send + Sync {
    fn served(&self, user: &Arc<UserInfo>, attributes: &Attributes, code: u16);
}

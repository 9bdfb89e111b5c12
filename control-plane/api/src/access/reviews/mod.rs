//! The kinds by which clients ask who they are and what they, or others, may. Nothing of them is stored.
//!
//! - [`access`](self): SelfSubjectAccessReview, SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectRulesReview
//! - [`identity`](self): SelfSubjectReview, TokenReview

mod access;
mod identity;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Authenticator, Authorizer, UserInfo};
use crate::{
    failure::Failure,
    kind::{Kind, KindScope, Review, Storage},
};

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// All six kinds, answered by these chains.
pub fn kinds(
    authenticators: Arc<[Arc<dyn Authenticator>]>,
    authorizers: &Arc<[Arc<dyn Authorizer>]>,
) -> Vec<Kind> {
    let access = |about| {
        Arc::new(access::AccessReview {
            about,
            chain: Arc::clone(authorizers),
        })
    };
    vec![
        kind(
            AUTHORIZATION,
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            "selfsubjectaccessreview",
            access(access::About::Asker),
        ),
        kind(
            AUTHORIZATION,
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
            "selfsubjectrulesreview",
            Arc::new(access::RulesReview(Arc::clone(authorizers))),
        ),
        kind(
            AUTHORIZATION,
            "SubjectAccessReview",
            "subjectaccessreviews",
            "subjectaccessreview",
            access(access::About::Named),
        ),
        Kind {
            scope: KindScope::Namespaced,
            ..kind(
                AUTHORIZATION,
                "LocalSubjectAccessReview",
                "localsubjectaccessreviews",
                "localsubjectaccessreview",
                access(access::About::NamedHere),
            )
        },
        kind(
            AUTHENTICATION,
            "SelfSubjectReview",
            "selfsubjectreviews",
            "selfsubjectreview",
            Arc::new(identity::SelfReview),
        ),
        kind(
            AUTHENTICATION,
            "TokenReview",
            "tokenreviews",
            "tokenreview",
            Arc::new(identity::TokenReview(authenticators)),
        ),
    ]
}

fn kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    review: Arc<dyn Review>,
) -> Kind {
    Kind {
        scope: KindScope::Cluster,
        columns: Vec::new(),
        storage: Storage::Review(review),
        builtin: true,
        generation: false,
        protobuf: crate::protobuf::decoder(&format!("{group}/v1"), kind),
        ..Kind::new(group, "v1", kind, plural, singular)
    }
}

/// As the reference server fails a review: neither kind nor name are told.
fn invalid(group: &str, error: evenkeel_shared::field::FieldError) -> Failure {
    let mut failure = Failure::invalid(group, "", "", &[error]);
    if let Some(details) = failure.details.as_object_mut() {
        details.retain(|_, value| value != "");
    }
    failure
}

/// `userInfo` of a status.
fn user_info(user: &UserInfo) -> Value {
    let mut info = Map::new();
    info.insert("username".into(), user.name.clone().into());
    if !user.uid.is_empty() {
        info.insert("uid".into(), user.uid.clone().into());
    }
    if !user.groups.is_empty() {
        info.insert("groups".into(), user.groups.clone().into());
    }
    if !user.extra.is_empty() {
        info.insert("extra".into(), json!(user.extra));
    }
    info.into()
}

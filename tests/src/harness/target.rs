//! A member to test against: a simulated one, or the real cluster that `EVENKEEL_TEST_KUBECONFIG` names.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};

use super::{Folder, Kubectl, control_plane::client_of, eventually};
use crate::member::{Member, MemberOptions};

/// The variable that names a real cluster's kubeconfig.
pub const REAL: &str = "EVENKEEL_TEST_KUBECONFIG";

/// A member cluster.
pub struct Target {
    /// The name under which it joins.
    pub name: String,
    pub kubeconfig: PathBuf,
    pub client: kube::Client,
    /// A namespace of the test's own, unique.
    pub namespace: String,
    simulated: Option<Member>,
    folder: Folder,
}

impl Target {
    /// The real cluster, if one is named, or else a simulated one.
    pub async fn start(name: &str) -> Self {
        match std::env::var_os(REAL) {
            Some(path) => Self::with(name, PathBuf::from(path), None, Folder::new()).await,
            None => Self::simulated(name, "eu-west-1").await,
        }
    }

    /// A simulated one in any case: for tests that break it, or need several.
    pub async fn simulated(name: &str, region: &str) -> Self {
        let member = Member::start(MemberOptions::small(name, region))
            .await
            .unwrap_or_else(|error| panic!("member {name}: {error}"));
        let folder = Folder::new();
        let kubeconfig = folder.write("kubeconfig", &member.kubeconfig());
        Self::with(name, kubeconfig, Some(member), folder).await
    }

    async fn with(
        name: &str,
        kubeconfig: PathBuf,
        simulated: Option<Member>,
        folder: Folder,
    ) -> Self {
        let client = client_of(&kubeconfig).await;
        let namespace = format!("evenkeel-test-{:08x}", rand::random::<u32>());
        Self {
            name: name.into(),
            kubeconfig,
            client,
            namespace,
            simulated,
            folder,
        }
    }

    /// The simulated member. Panics on a real one: ask only where [`Target::simulated`] made it.
    pub fn member(&self) -> &Member {
        self.simulated
            .as_ref()
            .unwrap_or_else(|| panic!("this member is real"))
    }

    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubeconfig, self.folder.path())
    }

    /// Makes the test's namespace in the member.
    pub async fn create_namespace(&self) {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(self.namespace.clone()),
                ..Default::default()
            },
            ..Default::default()
        };
        Api::<Namespace>::all(self.client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap_or_else(|error| panic!("namespace {}: {error}", self.namespace));
    }

    /// Takes the test's namespace out of a real cluster again. A simulated one ends with the test.
    pub async fn clean(&self) {
        if self.simulated.is_some() {
            return;
        }
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let _ = namespaces
            .delete(&self.namespace, &DeleteParams::background())
            .await;
        eventually(
            "the namespace is gone",
            Duration::from_mins(2),
            async || match namespaces.get_opt(&self.namespace).await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err("still there".to_owned()),
                Err(error) => Err(error.to_string()),
            },
        )
        .await;
    }
}

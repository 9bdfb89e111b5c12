//! Joining, in one process: a token, a request, a certificate, its renewal, and what is refused.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use evenkeel_api::{
    Server,
    access::{Clock, Credentials, MASTERS, UserInfo, certificate::CertificateAuthenticator, chain},
    kind::{Kind, Registry},
    local::Client,
};
use evenkeel_control_plane::{
    access::{Access, prepare},
    enrol::{self, Enrolment, sign::Lifetimes, token::NewToken},
    kinds,
    pki::{Pki, PkiOptions},
};
use evenkeel_shared::identity::AGENTS_GROUP;
use evenkeel_store::{
    Attributes, Body, Change, Key, Precondition, Resource, Store, StoreOptions, Write,
};
use jiff::Timestamp;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A control plane's access and enrolment over a store in memory.
struct House {
    server: Arc<Server>,
    store: Store,
    access: Access,
    pki: Pki,
    _data: tempfile::TempDir,
    stop: CancellationToken,
}

fn wall() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server stamps objects with the wall clock, and their age is judged"
    )]
    Timestamp::now()
}

impl House {
    async fn new() -> Self {
        let store = Store::in_memory(StoreOptions::new(kinds::attributes()));
        let stop = CancellationToken::new();
        let clock: Clock = Arc::new(wall);
        let mut access = Access::of_store(&store, &clock, &stop);
        let registry = Registry::new(kinds::kubernetes());
        registry.register(std::mem::take(&mut access.reviews));
        let mut builder = Server::builder(store.clone(), Arc::new(registry));
        for admission in &access.admissions {
            builder = builder.admission(Arc::clone(admission));
        }
        let server = builder.namespaces(Resource::new("", "namespaces")).build();
        let data = tempfile::tempdir().unwrap();
        let pki = Pki::open(
            &PkiOptions {
                data_dir: data.path().into(),
                bind: "127.0.0.1:6443".parse().unwrap(),
                advertise: Vec::new(),
                operator: None,
            },
            wall(),
        )
        .unwrap();
        let follow = std::mem::replace(&mut access.follow, Box::pin(std::future::ready(())));
        tokio::spawn(follow);
        let house = Self {
            server,
            store,
            pki,
            _data: data,
            stop: stop.clone(),
            access,
        };
        prepare(&house.admin(), &house.pki, "https://fleet.example.com:6443")
            .await
            .unwrap();
        let enrolment = Enrolment {
            client: house.admin(),
            authority: Arc::clone(house.pki.authority()),
            fleet: Arc::clone(&house.access.fleet),
            lifetimes: Lifetimes::default(),
            clock,
        };
        tokio::spawn(enrol::run(enrolment, stop));
        house
    }

    fn client(&self, user: UserInfo) -> Client {
        Client::new(Arc::clone(&self.server), Arc::new(user))
    }

    fn admin(&self) -> Client {
        self.client(UserInfo {
            name: "evenkeel-control-plane".into(),
            groups: vec![MASTERS.into()],
            ..UserInfo::default()
        })
    }

    fn kind(&self, group: &str, kind: &str) -> Arc<Kind> {
        Arc::clone(
            self.server
                .registry()
                .table()
                .find_kind(group, kind)
                .unwrap(),
        )
    }

    fn requests(&self) -> Arc<Kind> {
        self.kind("certificates.k8s.io", "CertificateSigningRequest")
    }

    /// Makes a token and becomes its bearer.
    async fn bearer(&self, cluster: Option<&str>) -> UserInfo {
        let issued = NewToken {
            description: String::new(),
            ttl: Some(Duration::from_hours(1)),
            cluster: cluster.map(Into::into),
        }
        .issue(wall())
        .unwrap();
        self.admin()
            .create(
                &self.kind("", "Secret"),
                Some("kube-system"),
                serde_json::from_str(issued.secret()).unwrap(),
            )
            .await
            .unwrap();
        chain::authenticate(
            &self.access.authenticators,
            &Credentials {
                certificate: None,
                bearer: Some(&issued.text()),
            },
        )
        .unwrap()
    }

    /// Asks for the certificate of an agent. The identity in it, or why not.
    async fn ask(&self, user: &UserInfo, cluster: &str) -> Result<UserInfo, String> {
        self.ask_as(
            user,
            &format!("system:karmada:agent:{cluster}"),
            AGENTS_GROUP,
        )
        .await
    }

    async fn ask_as(
        &self,
        user: &UserInfo,
        common_name: &str,
        organization: &str,
    ) -> Result<UserInfo, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let pem = params
            .serialize_request(&KeyPair::generate().unwrap())
            .unwrap()
            .pem()
            .unwrap();
        let request = json!({
            "metadata": {"generateName": "agent-"},
            "spec": {
                "request": BASE64_STANDARD.encode(pem),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["digital signature", "client auth"],
            },
        });
        let made = self
            .client(user.clone())
            .create(&self.requests(), None, request)
            .await
            .map_err(|failure| failure.message)?;
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        let done = |request: &Value| {
            request["status"]["certificate"].is_string()
                || request["status"]["conditions"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(|c| c["type"] != "Approved"))
        };
        let request = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let revision = self.store.revision();
                let request = self
                    .admin()
                    .get(&self.requests(), None, &name)
                    .await
                    .unwrap();
                if done(&request) {
                    return request;
                }
                self.store
                    .reached(evenkeel_store::Revision(revision.0 + 1))
                    .await;
            }
        })
        .await
        .map_err(|_| "nothing came of the request".to_owned())?;
        let Some(certificate) = request["status"]["certificate"].as_str() else {
            return Err(request["status"]["conditions"].to_string());
        };
        let pem = pem::parse(BASE64_STANDARD.decode(certificate).unwrap()).unwrap();
        Ok(CertificateAuthenticator::identity(pem.contents())
            .unwrap()
            .user)
    }

    /// A Cluster, as its agent makes it.
    async fn add_cluster(&self, name: &str) {
        let json =
            json!({"metadata": {"name": name}, "spec": {"id": format!("id-{name}")}}).to_string();
        self.store
            .commit(vec![Write {
                key: Key::new(Resource::new("cluster.karmada.io", "clusters"), None, name),
                precondition: Precondition::Absent,
                change: Change::Put(Body {
                    version_at: json.find("\"metadata\":{").unwrap() + "\"metadata\":{".len(),
                    json: json.into_bytes(),
                    attributes: Attributes::default(),
                }),
            }])
            .await
            .unwrap();
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_token_enrols_its_cluster_and_the_agent_renews() {
    let house = House::new().await;
    let bearer = house.bearer(Some("north")).await;
    let agent = house.ask(&bearer, "north").await.unwrap();
    assert_eq!(agent.name, "system:karmada:agent:north");
    assert_eq!(agent.groups, [AGENTS_GROUP]);
    // A bound token may enrol its cluster again: the agent lost its key.
    house.ask(&bearer, "north").await.unwrap();
    let gone = house.ask(&agent, "north").await.unwrap_err();
    assert!(gone.contains("there is no Cluster"), "{gone}");
    house.add_cluster("north").await;
    assert_eq!(house.ask(&agent, "north").await.unwrap().name, agent.name);
}

#[tokio::test]
async fn nobody_gets_the_identity_of_another() {
    let house = House::new().await;
    house.add_cluster("north").await;
    let (any, bound) = (house.bearer(None).await, house.bearer(Some("west")).await);
    let south = house.ask(&any, "south").await.unwrap();
    for (user, cluster, expected) in [
        (&any, "north", "is taken"),
        (&any, "south", "is claimed by"),
        (&bound, "south", "made for another cluster"),
        (&south, "north", "its own certificate only"),
    ] {
        let why = house.ask(user, cluster).await.unwrap_err();
        assert!(why.contains(expected), "{cluster}: {why}");
    }
    let king = house.ask_as(&any, "admin", MASTERS).await.unwrap_err();
    assert!(king.contains("is not allowed"), "{king}");
}

#[tokio::test]
async fn what_is_there_from_the_start_is_kept_as_it_is_changed() {
    let house = House::new().await;
    let (client, roles) = (
        house.admin(),
        house.kind("rbac.authorization.k8s.io", "ClusterRole"),
    );
    client
        .patch_merge(
            &roles,
            None,
            "view",
            None,
            &json!({"metadata": {"labels": {"mine": "yes"}}}),
            "me",
        )
        .await
        .unwrap();
    prepare(&client, &house.pki, "https://other.example.com:6443")
        .await
        .unwrap();
    let view = client.get(&roles, None, "view").await.unwrap();
    assert_eq!(view["metadata"]["labels"]["mine"], "yes");
    let info = client
        .get(
            &house.kind("", "ConfigMap"),
            Some("kube-public"),
            "cluster-info",
        )
        .await
        .unwrap();
    let kubeconfig = info["data"]["kubeconfig"].as_str().unwrap();
    assert!(kubeconfig.contains("server: https://other.example.com:6443"));
    assert!(!kubeconfig.contains("client-key-data"));
}

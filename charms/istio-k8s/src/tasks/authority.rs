//! Makes the key of the mesh's certificate authority, and the request to sign it.
//!
//! The key is made once and lives in one Secret beside istiod; the certificate arrives by the
//! relation. See [`crate::authority`] for what is decided from both.

use juju_charm::{Event, ModelView};
use k8s_openapi::ByteString;
use kube_apply::{Delete, Engine, Error, Inventory, Object, Result};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;

use super::Report;
use crate::authority::{self, State};
use crate::observe::View;
use crate::validate::Validated;

const MANAGER: &str = "istio-k8s/authority";

/// A key to make.
#[derive(Debug)]
pub struct Issue {
    inventory: Inventory,
    namespace: String,
    common_name: String,
}

/// The request that was made, as PEM.
#[derive(Clone, Debug)]
pub struct Request(pub String);

/// The work, where a relation waits for a request and there is none.
pub(super) fn task(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Issue> {
    let Validated::Run(installation) = validated else {
        return None;
    };
    let unrequested = matches!(authority::state(view, cluster), State::Unrequested);
    if !unrequested || view.context.event == Event::Remove {
        return None;
    }
    let settings = &installation.settings;
    let name = format!("istio {} {}", settings.namespace, settings.revision);
    Some(Issue {
        inventory: authority::inventory(view),
        namespace: settings.namespace.to_string(),
        common_name: name.chars().take(64).collect(),
    })
}

/// A key to delete.
#[derive(Debug)]
pub struct Forget(Object);

/// The key goes with the application.
pub(super) fn at_removal(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
) -> Option<Forget> {
    let request = cluster.surroundings.request.clone()?;
    let goes = matches!(validated, Validated::Leave) && authority::inventory(view).owns(&request);
    goes.then_some(Forget(request))
}

impl Forget {
    /// Deletes it; what is gone already is no obstacle.
    pub(super) async fn run(self, engine: &Engine) -> Result<Report> {
        let options = Delete {
            uid: self.0.uid().map(str::to_owned),
            ..Delete::default()
        };
        engine.delete(&self.0.id(), &options).await?;
        Ok(Report::default())
    }
}

impl Issue {
    /// Makes key and request, and keeps both in a Secret. Somebody faster wins.
    pub(super) async fn run(self, engine: &Engine) -> Result<Report> {
        let Some((key, csr)) = self.generated() else {
            return Ok(Report::default());
        };
        let labels = self.inventory.labels();
        let name = authority::secret_name(&self.inventory.owner.app);
        let secret = Object::new(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "data": {
                authority::KEY: ByteString(key.into_bytes()),
                authority::CSR: ByteString(csr.clone().into_bytes()),
            },
        }))?;
        match engine.create(&secret, MANAGER, false).await {
            Ok(_) => Ok(Report {
                request: Some(Request(csr)),
                ..Report::default()
            }),
            Err(Error::Raced { .. }) => Ok(Report::default()),
            Err(error) => Err(error),
        }
    }

    /// A fresh key and the request to sign it, both as PEM.
    fn generated(&self) -> Option<(String, String)> {
        let key = KeyPair::generate().ok()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, self.common_name.as_str());
        let csr = params.serialize_request(&key).ok()?.pem().ok()?;
        Some((key.serialize_pem(), csr.replace("\r\n", "\n")))
    }
}

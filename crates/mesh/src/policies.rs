//! Policies in front of workloads: who may call them, and nothing else.
//!
//! An ALLOW policy denies every other request to the pods it selects, so each one names exactly what
//! was asked for: who, which pods, which ports, methods and paths. They mean something only where the
//! pods are part of the mesh.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::security::{
    Action, AuthorizationPolicy, AuthorizationPolicySpec, From, Operation, Rule, Selector, Source,
    To,
};

/// The annotation by which Istio only logs what a policy would do.
const DRY_RUN: &str = "istio.io/dry-run";

/// Whether policies act or only log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PolicyMode {
    /// They act.
    #[default]
    Enforce,
    /// They log what they would do.
    Audit,
}

impl std::str::FromStr for PolicyMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "enforce" | "" => Ok(Self::Enforce),
            "audit" => Ok(Self::Audit),
            other => Err(format!("must be enforce or audit, is {other:?}")),
        }
    }
}

/// Pods of a namespace.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Pods {
    /// The namespace.
    pub namespace: String,
    /// Labels that they have; never empty.
    pub labels: BTreeMap<String, String>,
}

/// What may be called: everything given must hold.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Endpoint {
    /// Hosts.
    pub hosts: Vec<String>,
    /// The pods' ports.
    pub ports: BTreeSet<u16>,
    /// Methods.
    pub methods: Vec<String>,
    /// Paths.
    pub paths: Vec<String>,
}

/// The identity of an account in the mesh.
pub fn principal(trust_domain: &str, namespace: &str, account: &str) -> String {
    format!("{trust_domain}/ns/{namespace}/sa/{account}")
}

/// Lets `principals` call the endpoints of `pods`; no endpoints: all of them.
pub fn allow(
    name: &str,
    pods: &Pods,
    principals: &[String],
    endpoints: &[Endpoint],
    mode: PolicyMode,
) -> AuthorizationPolicy {
    let to = |endpoint: &Endpoint| To {
        operation: Operation {
            hosts: endpoint.hosts.clone(),
            ports: endpoint.ports.iter().map(u16::to_string).collect(),
            methods: endpoint.methods.clone(),
            paths: endpoint.paths.clone(),
            ..Operation::default()
        },
    };
    let rule = Rule {
        from: vec![From {
            source: Source {
                principals: principals.to_vec(),
                ..Source::default()
            },
        }],
        to: endpoints.iter().map(to).collect(),
        when: Vec::new(),
    };
    let spec = AuthorizationPolicySpec {
        selector: Some(Selector {
            match_labels: pods.labels.clone(),
        }),
        action: Some(Action::Allow),
        rules: vec![rule],
        ..AuthorizationPolicySpec::default()
    };
    with_mode(AuthorizationPolicy::new(&pods.namespace, name, spec), mode)
}

/// Denies every request to a namespace's pods that no other policy allows.
pub fn deny_by_default(name: &str, namespace: &str, mode: PolicyMode) -> AuthorizationPolicy {
    let spec = AuthorizationPolicySpec {
        action: Some(Action::Allow),
        ..AuthorizationPolicySpec::default()
    };
    with_mode(AuthorizationPolicy::new(namespace, name, spec), mode)
}

fn with_mode(mut policy: AuthorizationPolicy, mode: PolicyMode) -> AuthorizationPolicy {
    if mode == PolicyMode::Audit {
        let annotation = (DRY_RUN.to_owned(), "true".to_owned());
        policy.metadata.annotations = Some(BTreeMap::from([annotation]));
    }
    policy
}

#[cfg(test)]
mod tests {
    use istio_api::CustomObject as _;
    use serde_json::json;

    use super::*;

    fn pods() -> Pods {
        Pods {
            namespace: "lab".to_owned(),
            labels: [("app.kubernetes.io/name".to_owned(), "books".to_owned())].into(),
        }
    }

    #[test]
    fn exactly_what_was_asked_for_is_allowed() {
        let endpoint = Endpoint {
            ports: [8080].into(),
            methods: vec!["GET".to_owned()],
            paths: vec!["/metrics".to_owned()],
            hosts: Vec::new(),
        };
        let who = principal("cluster.local", "edge-lab", "edge");
        let policy = allow("a", &pods(), &[who], &[endpoint], PolicyMode::Enforce).to_object();
        assert_eq!(policy["metadata"], json!({"name": "a", "namespace": "lab"}));
        assert_eq!(
            policy["spec"],
            json!({
                "selector": {"matchLabels": {"app.kubernetes.io/name": "books"}},
                "action": "ALLOW",
                "rules": [{
                    "from": [{"source": {"principals": ["cluster.local/ns/edge-lab/sa/edge"]}}],
                    "to": [{"operation": {"ports": ["8080"], "methods": ["GET"], "paths": ["/metrics"]}}],
                }],
            })
        );
    }

    #[test]
    fn audited_policies_only_log() {
        let policy = deny_by_default("a", "lab", PolicyMode::Audit).to_object();
        assert_eq!(
            policy["metadata"]["annotations"],
            json!({"istio.io/dry-run": "true"})
        );
        assert_eq!(policy["spec"], json!({"action": "ALLOW"}));
        assert_eq!("audit".parse(), Ok(PolicyMode::Audit));
        assert!("on".parse::<PolicyMode>().is_err());
    }
}

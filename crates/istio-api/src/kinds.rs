//! The table of kinds: group, versions, plural, scope and the rank in which objects are applied.
//!
//! There is one table so that "what we write" and "what we prune" cannot drift apart: the apply
//! engine takes paths, order and the list of kinds to prune from here. Sources: Kubernetes' own
//! discovery document for built-in kinds, Istio's CRDs (1.22 and newer serve `v1` of most kinds) and
//! Gateway API's CRDs for the rest.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::meta::{api_version, split_api_version};

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One per cluster.
    Cluster,
    /// One per namespace.
    Namespaced,
}

/// One kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Versions we can speak, newest first; never empty.
    pub versions: &'static [&'static str],
    /// `Deployment`.
    pub kind: &'static str,
    /// `deployments`.
    pub plural: &'static str,
    /// Cluster-wide or namespaced.
    pub scope: Scope,
    /// Apply order inside a stage, lowest first; pruning goes the other way.
    pub rank: u8,
}

/// Apply ranks. Lower is applied earlier.
pub mod rank {
    /// Namespaces come before what lives in them.
    pub const NAMESPACE: u8 = 0;
    /// Definitions come before their objects.
    pub const CRD: u8 = 1;
    /// Identities and permissions come before the workloads that use them.
    pub const RBAC: u8 = 2;
    /// Configuration that workloads mount.
    pub const CONFIG: u8 = 3;
    /// Services come before workloads, so that their names resolve at start.
    pub const SERVICE: u8 = 4;
    /// Deployments and the like.
    pub const WORKLOAD: u8 = 5;
    /// Scaling, disruption budgets, network policies.
    pub const POLICY: u8 = 6;
    /// Custom resources that protect (authentication, authorization).
    pub const SECURITY: u8 = 7;
    /// Custom resources that route: never before the protection of the route exists.
    pub const ROUTE: u8 = 8;
    /// Admission comes last: it must not judge before the judge answers.
    pub const WEBHOOK: u8 = 9;
}

/// One row per line: scope, group, versions (newest first), kind, plural, rank.
macro_rules! kinds {
    ($($scope:ident $group:literal [$($version:literal)+] $kind:ident $plural:literal $rank:ident;)+) => {
        &[$(Kind {
            group: $group,
            versions: &[$($version),+],
            kind: stringify!($kind),
            plural: $plural,
            scope: Scope::$scope,
            rank: rank::$rank,
        }),+]
    };
}

/// Every kind that Istio's charts (base, istiod, gateway, default, cni, ztunnel) render and that
/// the charms write. The kinds to prune are taken from here.
pub static TABLE: &[Kind] = kinds! {
    Cluster    "" ["v1"] Namespace "namespaces" NAMESPACE;
    Cluster    "apiextensions.k8s.io" ["v1"] CustomResourceDefinition "customresourcedefinitions" CRD;
    Namespaced "" ["v1"] ServiceAccount "serviceaccounts" RBAC;
    Cluster    "rbac.authorization.k8s.io" ["v1"] ClusterRole "clusterroles" RBAC;
    Cluster    "rbac.authorization.k8s.io" ["v1"] ClusterRoleBinding "clusterrolebindings" RBAC;
    Namespaced "rbac.authorization.k8s.io" ["v1"] Role "roles" RBAC;
    Namespaced "rbac.authorization.k8s.io" ["v1"] RoleBinding "rolebindings" RBAC;
    Namespaced "" ["v1"] ConfigMap "configmaps" CONFIG;
    Namespaced "" ["v1"] Secret "secrets" CONFIG;
    Namespaced "" ["v1"] ResourceQuota "resourcequotas" CONFIG;
    Namespaced "" ["v1"] LimitRange "limitranges" CONFIG;
    Namespaced "" ["v1"] Service "services" SERVICE;
    Namespaced "discovery.k8s.io" ["v1"] EndpointSlice "endpointslices" SERVICE;
    Namespaced "apps" ["v1"] Deployment "deployments" WORKLOAD;
    Namespaced "apps" ["v1"] DaemonSet "daemonsets" WORKLOAD;
    Namespaced "apps" ["v1"] StatefulSet "statefulsets" WORKLOAD;
    Namespaced "batch" ["v1"] Job "jobs" WORKLOAD;
    Namespaced "autoscaling" ["v2"] HorizontalPodAutoscaler "horizontalpodautoscalers" POLICY;
    Namespaced "policy" ["v1"] PodDisruptionBudget "poddisruptionbudgets" POLICY;
    Namespaced "networking.k8s.io" ["v1"] NetworkPolicy "networkpolicies" POLICY;
    Namespaced "k8s.cni.cncf.io" ["v1"] NetworkAttachmentDefinition "network-attachment-definitions" POLICY;
    Namespaced "security.istio.io" ["v1" "v1beta1"] PeerAuthentication "peerauthentications" SECURITY;
    Namespaced "security.istio.io" ["v1" "v1beta1"] RequestAuthentication "requestauthentications" SECURITY;
    Namespaced "security.istio.io" ["v1" "v1beta1"] AuthorizationPolicy "authorizationpolicies" SECURITY;
    Namespaced "networking.istio.io" ["v1alpha3"] EnvoyFilter "envoyfilters" SECURITY;
    Namespaced "networking.istio.io" ["v1" "v1beta1" "v1alpha3"] DestinationRule "destinationrules" ROUTE;
    Namespaced "networking.istio.io" ["v1" "v1beta1" "v1alpha3"] Gateway "gateways" ROUTE;
    Namespaced "networking.istio.io" ["v1" "v1beta1" "v1alpha3"] ServiceEntry "serviceentries" ROUTE;
    Namespaced "networking.istio.io" ["v1" "v1beta1" "v1alpha3"] Sidecar "sidecars" ROUTE;
    Namespaced "networking.istio.io" ["v1" "v1beta1" "v1alpha3"] VirtualService "virtualservices" ROUTE;
    Namespaced "networking.istio.io" ["v1" "v1beta1" "v1alpha3"] WorkloadEntry "workloadentries" ROUTE;
    Namespaced "networking.istio.io" ["v1" "v1beta1" "v1alpha3"] WorkloadGroup "workloadgroups" ROUTE;
    Namespaced "networking.istio.io" ["v1beta1"] ProxyConfig "proxyconfigs" ROUTE;
    Namespaced "telemetry.istio.io" ["v1" "v1alpha1"] Telemetry "telemetries" ROUTE;
    Namespaced "extensions.istio.io" ["v1alpha1"] WasmPlugin "wasmplugins" ROUTE;
    Namespaced "extensions.istio.io" ["v1alpha1"] TrafficExtension "trafficextensions" ROUTE;
    Cluster    "gateway.networking.k8s.io" ["v1" "v1beta1"] GatewayClass "gatewayclasses" SECURITY;
    Namespaced "gateway.networking.k8s.io" ["v1" "v1beta1"] ReferenceGrant "referencegrants" SECURITY;
    Namespaced "gateway.networking.k8s.io" ["v1" "v1alpha3"] BackendTLSPolicy "backendtlspolicies" SECURITY;
    Namespaced "gateway.networking.k8s.io" ["v1" "v1beta1"] Gateway "gateways" ROUTE;
    Namespaced "gateway.networking.k8s.io" ["v1" "v1beta1"] HTTPRoute "httproutes" ROUTE;
    Namespaced "gateway.networking.k8s.io" ["v1"] GRPCRoute "grpcroutes" ROUTE;
    Namespaced "gateway.networking.k8s.io" ["v1" "v1alpha3" "v1alpha2"] TLSRoute "tlsroutes" ROUTE;
    Namespaced "gateway.networking.k8s.io" ["v1" "v1alpha2"] TCPRoute "tcproutes" ROUTE;
    Cluster    "admissionregistration.k8s.io" ["v1" "v1beta1"]
        ValidatingAdmissionPolicy "validatingadmissionpolicies" WEBHOOK;
    Cluster    "admissionregistration.k8s.io" ["v1" "v1beta1"]
        ValidatingAdmissionPolicyBinding "validatingadmissionpolicybindings" WEBHOOK;
    Cluster    "admissionregistration.k8s.io" ["v1"]
        MutatingWebhookConfiguration "mutatingwebhookconfigurations" WEBHOOK;
    Cluster    "admissionregistration.k8s.io" ["v1"]
        ValidatingWebhookConfiguration "validatingwebhookconfigurations" WEBHOOK;
};

/// Kinds that are only ever read. Never written, never pruned.
pub static READ_ONLY: &[Kind] = kinds! {
    Namespaced "" ["v1"] Pod "pods" WORKLOAD;
    Cluster    "" ["v1"] Node "nodes" WORKLOAD;
    Namespaced "" ["v1"] Event "events" WORKLOAD;
    Namespaced "" ["v1"] Endpoints "endpoints" SERVICE;
    Namespaced "apps" ["v1"] ReplicaSet "replicasets" WORKLOAD;
    Namespaced "coordination.k8s.io" ["v1"] Lease "leases" CONFIG;
    Namespaced "networking.k8s.io" ["v1"] Ingress "ingresses" ROUTE;
    Cluster    "networking.k8s.io" ["v1"] IngressClass "ingressclasses" ROUTE;
    Namespaced "install.istio.io" ["v1alpha1"] IstioOperator "istiooperators" ROUTE;
};

/// The row of a kind, in [`TABLE`] or [`READ_ONLY`].
pub fn lookup(group: &str, kind: &str) -> Option<&'static Kind> {
    TABLE
        .iter()
        .chain(READ_ONLY)
        .find(|row| row.group == group && row.kind == kind)
}

/// The apply rank of a kind; kinds outside the tables are custom resources that route.
pub fn rank_of(group: &str, kind: &str) -> u8 {
    lookup(group, kind).map_or(rank::ROUTE, |row| row.rank)
}

impl Kind {
    /// The newest version we can speak.
    pub fn newest(&self) -> &'static str {
        self.versions.first().copied().unwrap_or("v1")
    }

    /// `group/version` for one of the versions.
    pub fn api_version(&self, version: &str) -> String {
        api_version(self.group, version)
    }

    /// Whether objects live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The URL path of a collection (`name` is `None`) or an object. A namespace given for a
    /// cluster-scoped kind is ignored; a namespaced kind without one means all namespaces.
    pub fn path(&self, version: &str, namespace: Option<&str>, name: Option<&str>) -> String {
        let namespace = namespace.filter(|_| self.is_namespaced());
        resource_path(self.group, version, self.plural, namespace, name)
    }
}

/// The URL path of a collection or an object of any kind. Names are escaped: whatever stands in
/// one, it stays one segment of the path.
pub fn resource_path(
    group: &str,
    version: &str,
    plural: &str,
    namespace: Option<&str>,
    name: Option<&str>,
) -> String {
    let mut path = if group.is_empty() {
        format!("/api/{version}/")
    } else {
        format!("/apis/{group}/{version}/")
    };
    if let Some(namespace) = namespace {
        path.push_str("namespaces/");
        push_escaped(&mut path, namespace);
        path.push('/');
    }
    path.push_str(plural);
    if let Some(name) = name {
        path.push('/');
        push_escaped(&mut path, name);
    }
    path
}

/// Appends `segment` with everything percent-encoded but RFC 3986's unreserved characters and `:`,
/// which names of roles have. A segment of dots only is encoded too: it would mean another path.
fn push_escaped(path: &mut String, segment: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let dots = segment.bytes().all(|byte| byte == b'.');
    for byte in segment.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-_~:".contains(&byte);
        if plain || (byte == b'.' && !dots) {
            path.push(char::from(byte));
        } else {
            path.push('%');
            path.push(char::from(HEX[usize::from(byte >> 4)]));
            path.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Names one object. Ordered by group, kind, namespace, name.
///
/// `Display` is `Kind namespace/name`, or `Kind name` for cluster-scoped objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// API group; empty for the core group.
    pub group: String,
    /// `Deployment`.
    pub kind: String,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
    /// API version without the group.
    pub version: String,
}

impl ObjectRef {
    /// Names a namespaced object by `apiVersion`.
    pub fn namespaced(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self::new(api_version, kind, Some(namespace), name)
    }

    /// Names a cluster-scoped object by `apiVersion`.
    pub fn cluster(api_version: &str, kind: &str, name: &str) -> Self {
        Self::new(api_version, kind, None, name)
    }

    /// Names an object by `apiVersion`.
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// Whether both name the same object, whatever version they were read in.
    pub fn same_object(&self, other: &Self) -> bool {
        self.group == other.group
            && self.kind == other.kind
            && self.namespace == other.namespace
            && self.name == other.name
    }

    /// `group/version`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_one_row_and_at_least_one_version() {
        let mut seen = BTreeSet::new();
        for row in TABLE.iter().chain(READ_ONLY) {
            assert!(
                seen.insert((row.group, row.kind)),
                "{} is listed twice",
                row.kind
            );
            assert!(!row.versions.is_empty(), "{} has no version", row.kind);
        }
    }

    #[test]
    fn protection_is_applied_before_routes_and_webhooks_last() {
        let order = [
            ("", "Namespace"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("", "ConfigMap"),
            ("", "Service"),
            ("apps", "Deployment"),
            ("autoscaling", "HorizontalPodAutoscaler"),
            ("security.istio.io", "AuthorizationPolicy"),
            ("networking.istio.io", "VirtualService"),
            (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
            ),
        ];
        for (rank, (group, kind)) in (0u8..).zip(order) {
            assert_eq!(rank_of(group, kind), rank, "{kind}");
        }
    }

    #[test]
    fn paths_are_those_of_the_api_server() {
        let check = |group, kind, version, namespace, name, expect| {
            let row = lookup(group, kind).expect("listed");
            assert_eq!(row.path(version, namespace, name), expect);
        };
        check(
            "",
            "Service",
            "v1",
            Some("lab"),
            Some("a"),
            "/api/v1/namespaces/lab/services/a",
        );
        check("", "Service", "v1", None, None, "/api/v1/services");
        check(
            "",
            "Namespace",
            "v1",
            None,
            Some("lab"),
            "/api/v1/namespaces/lab",
        );
        check("", "Namespace", "v1", None, None, "/api/v1/namespaces");
        check(
            "apps",
            "Deployment",
            "v1",
            Some("lab"),
            None,
            "/apis/apps/v1/namespaces/lab/deployments",
        );
        check(
            "rbac.authorization.k8s.io",
            "ClusterRole",
            "v1",
            Some("ignored"),
            Some("r"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/r",
        );
    }

    #[test]
    fn a_name_stays_one_segment_of_the_path_whatever_stands_in_it() {
        let check = |name: &str, expect: &str| {
            let path = resource_path("", "v1", "services", Some("lab"), Some(name));
            assert_eq!(path, format!("/api/v1/namespaces/lab/services/{expect}"));
        };
        check("meshy-1.lab", "meshy-1.lab");
        check("system:meshy", "system:meshy");
        check("a b", "a%20b");
        check("x/proxy/admin", "x%2Fproxy%2Fadmin");
        check("..", "%2E%2E");
        check("x?watch=1#%41", "x%3Fwatch%3D1%23%2541");
        check("é", "%C3%A9");
        let path = resource_path("", "v1", "pods", Some("lab/pods"), None);
        assert_eq!(path, "/api/v1/namespaces/lab%2Fpods/pods");
    }

    #[test]
    fn an_object_is_the_same_in_every_version() {
        let old = ObjectRef::namespaced("networking.istio.io/v1beta1", "Gateway", "lab", "meshy");
        let new = ObjectRef::namespaced("networking.istio.io/v1", "Gateway", "lab", "meshy");
        assert!(old.same_object(&new));
        assert_eq!(old.to_string(), "Gateway lab/meshy");
        assert!(!old.same_object(&ObjectRef::cluster(
            "networking.istio.io/v1",
            "Gateway",
            "meshy"
        )));
    }
}

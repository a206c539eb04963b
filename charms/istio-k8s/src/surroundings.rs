//! What the charm reads of the cluster besides control planes: node components, the certificate
//! authority, Gateway API's definitions.

use std::fs;
use std::path::PathBuf;

use juju_charm::ModelView;
use kube_apply::{Engine, Error, Note, Object, Observed, Query, Result};
use mesh::control_plane::ControlPlane;
use mesh::gateway_api::{self, Bundle};
use serde_json::Value;

use crate::authority;
use crate::config::{self, GatewayApiCrds, Options};

/// Name of the file resource with Gateway API's definitions.
pub const GATEWAY_API: &str = "gateway-api-crds";
const DEFINITIONS: &str = "apiextensions.k8s.io";

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Namespace of istiod.
    namespace: String,
    /// Name of the Secret with the authority's request.
    request: String,
    /// Path of the bundle of Gateway API's definitions, where it is asked for.
    bundle: Option<Result<PathBuf, String>>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Every `DaemonSet` of a node agent or node proxy.
    pub node_components: Vec<Object>,
    /// Pods that need the node components, where those would be taken away.
    pub dependants: Vec<String>,
    /// Whether Istio's definitions are there.
    pub definitions: bool,
    /// The Secret with the authority that istiod was given.
    pub cacerts: Option<Object>,
    /// The Secret with the authority that istiod made for itself.
    pub self_signed: bool,
    /// The Secret with the authority's key and request.
    pub request: Option<Object>,
    /// Gateway API's definitions, metadata only, where they are asked for.
    pub gateway_api: Vec<Object>,
    /// The bundle to install of them.
    pub bundle: Option<Result<Bundle, String>>,
}

/// What a dispatch needs to know.
pub fn wanted(view: &ModelView) -> Wanted {
    let options = config::options(&view.config, &view.context.app).ok();
    let policy = options.as_ref().map(|o| o.gateway_api_crds);
    let resource = || {
        let resource = view.resources.get(GATEWAY_API).cloned();
        resource.unwrap_or_else(|| Err("the resource is not declared".to_owned()))
    };
    let namespace = |options: Options| options.settings.namespace.to_string();
    Wanted {
        bundle: policy
            .filter(|policy| *policy != GatewayApiCrds::Never && view.leader)
            .map(|_| resource()),
        namespace: options.map(namespace).unwrap_or_default(),
        request: authority::secret_name(view.context.app.as_str()),
    }
}

/// Reads it. `rendered` is what would be applied, `owns` tells this application's own objects.
pub async fn read(
    engine: &Engine,
    wanted: &Wanted,
    rendered: Option<&ControlPlane>,
    owns: impl Fn(&Object) -> bool,
) -> Result<Surroundings> {
    let namespace = Some(wanted.namespace.as_str());
    let mut queries = vec![Query::list("apps", "DaemonSet")];
    if !wanted.namespace.is_empty() {
        queries.extend([
            Query::get("", "Secret", namespace, authority::CACERTS),
            Query::get("", "Secret", namespace, "istio-ca-secret").metadata_only(),
            Query::get("", "Secret", namespace, &wanted.request),
        ]);
    }
    if wanted.bundle.is_some() {
        queries.push(Query::list(DEFINITIONS, "CustomResourceDefinition").metadata_only());
    }
    let observed = observe(engine, &queries).await?;
    let secret = |name: &str| observed.get("", "Secret", namespace, name).cloned();
    let definitions = observed.list(DEFINITIONS, "CustomResourceDefinition");
    let node_components: Vec<Object> = observed
        .list("apps", "DaemonSet")
        .filter(|set| is_node_component(set))
        .cloned()
        .collect();
    let dependants = match rendered {
        Some(rendered) if loses(&node_components, rendered, owns) => dependants(engine).await?,
        _ => Vec::new(),
    };
    Ok(Surroundings {
        dependants,
        definitions: serves_istio(&observed),
        cacerts: secret(authority::CACERTS),
        self_signed: secret("istio-ca-secret").is_some(),
        request: secret(&wanted.request),
        gateway_api: definitions
            .filter(|definition| gateway_api::is_definition(definition.value()))
            .cloned()
            .collect(),
        bundle: wanted.bundle.clone().map(bundle),
        node_components,
    })
}

/// Reads all of it. What may not be read is not the same as nothing: taken for nothing, somebody
/// else's would be overlooked.
pub(crate) async fn observe(engine: &Engine, queries: &[Query]) -> Result<Observed> {
    let observed = engine.observe(queries).await?;
    let refusal = observed.notes().find_map(|note| match note {
        Note::Forbidden { verb, resource } => Some((verb.clone(), resource.clone())),
        Note::NotInstalled { .. } => None,
    });
    match refusal {
        Some((verb, resource)) => Err(Error::Forbidden {
            verb,
            resource,
            message: String::new(),
        }),
        None => Ok(observed),
    }
}

/// By the names and labels of upstream's charts.
fn is_node_component(set: &Object) -> bool {
    let selects = |key: &str, value: &str| {
        let labels = set.pointer("/spec/selector/matchLabels");
        labels.is_some_and(|labels| labels[key] == value)
    };
    set.name().starts_with("istio-cni")
        || set.name() == "ztunnel"
        || selects("k8s-app", "istio-cni-node")
        || selects("app", "ztunnel")
}

fn serves_istio(observed: &Observed) -> bool {
    let served = observed.served();
    served
        .best("networking.istio.io", "VirtualService")
        .is_some()
}

/// Whether a node component of ours is no longer wanted.
pub fn loses(live: &[Object], rendered: &ControlPlane, owns: impl Fn(&Object) -> bool) -> bool {
    let wanted = |name: &str| {
        let rendered = rendered.cni.iter().chain(&rendered.ztunnel);
        rendered
            .into_iter()
            .any(|o| o["kind"] == "DaemonSet" && o["metadata"]["name"] == name)
    };
    live.iter().any(|set| owns(set) && !wanted(set.name()))
}

/// Pods that would lose their network: those of ambient mode, and those whose traffic the node agent
/// redirects.
async fn dependants(engine: &Engine) -> Result<Vec<String>> {
    let observed = observe(engine, &[Query::list("", "Pod")]).await?;
    let depends = |pod: &Value| {
        let redirected = &pod["metadata"]["annotations"]["ambient.istio.io/redirection"];
        let init = pod["spec"]["initContainers"].as_array();
        redirected == "enabled"
            || init
                .into_iter()
                .flatten()
                .any(|c| c["name"] == "istio-validation")
    };
    Ok(observed
        .list("", "Pod")
        .filter(|pod| depends(pod.value()))
        .map(|pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name()))
        .collect())
}

fn bundle(path: Result<PathBuf, String>) -> Result<Bundle, String> {
    let path = path.map_err(|_| "is not attached".to_owned())?;
    let text = fs::read_to_string(path).map_err(|why| format!(": {why}"))?;
    if text.trim().is_empty() {
        return Err("is not attached".to_owned());
    }
    gateway_api::bundle(&text).map_err(|why| format!(": {why}"))
}

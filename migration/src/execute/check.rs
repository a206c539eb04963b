//! Checks: what has to hold, asked of the cluster each time.

use std::collections::BTreeMap;

use kube_apply::{Delete, Error, Object, ObjectRef, Query, Result};
use mesh::restart::is_rolled_out;
use serde_json::{Value, json};

use super::perform;
use crate::api::Api;
use crate::inventory::{self, CA_SECRETS, PURGED, ROOT_CONFIG_MAP};
use crate::plan::{
    COPY_OF, Check, Class, KINDS, Meaning, NOT_AN_ADDRESS, Plan, asks, class_of_pods, meaning,
    serves,
};
use crate::webhooks;

const ADMISSION: &str = "admissionregistration.k8s.io";
const NETWORKING: &str = "networking.istio.io";

/// A check in a phrase.
pub(super) fn name(check: &Check) -> String {
    match check {
        Check::Exists { object } => format!("{object} exists"),
        Check::Absent { object } => format!("{object} is gone"),
        Check::Field {
            object, pointer, ..
        } => format!("{object} has its {pointer}"),
        Check::RolledOut { object } => format!("{object} is rolled out"),
        Check::Root { namespace, .. } => format!("the CA in {namespace} is the mesh's"),
        Check::SameTrust { namespace, other } => {
            format!("{namespace} and {other} are told the same root")
        }
        Check::Armed { object } => format!("{object} answers"),
        Check::Injects { namespace, .. } => format!("pods of {namespace} are injected"),
        Check::OneInjector => "every pod that had an injector has one".to_owned(),
        Check::Refreshed { workload, .. } => format!("{workload} is on its new control plane"),
        Check::Drained { namespace, .. } => format!("istiod in {namespace} serves nobody"),
        Check::Unreferenced { host } => format!("no pod names {host}"),
        Check::Mirrored { from, to, .. } => {
            format!("what holds for the mesh from {from} holds from {to}")
        }
        Check::Undeletable { object } => format!("{object} cannot be deleted"),
        Check::NotPurged { .. } => "a purge would find nothing".to_owned(),
        Check::MeshRoot { root, .. } => format!("the mesh works with root namespace {root}"),
        Check::Replaced { route, .. } => format!("{route} is replaced"),
        Check::Guarded { .. } => "another owner guards the gateway".to_owned(),
        Check::Programmed { object, .. } => format!("the gateways run with {object}"),
    }
}

/// Those that still hold when all is over.
pub(super) fn lasting(plan: &Plan) -> Vec<Check> {
    let mut found = vec![Check::OneInjector];
    let Some(to) = &plan.to else { return found };
    found.push(Check::Drained {
        namespace: plan.from.namespace.clone(),
        revision: plan.from.revision.clone(),
    });
    if let Some(fingerprint) = &plan.root {
        found.push(Check::Root {
            namespace: to.namespace.clone(),
            fingerprint: fingerprint.clone(),
        });
    }
    for step in &plan.steps {
        let lasting = step
            .after
            .iter()
            .filter(|check| matches!(check, Check::RolledOut { .. } | Check::Refreshed { .. }));
        found.extend(lasting.cloned());
    }
    found
}

/// Why a check does not hold; `None` when it does.
pub(super) async fn unmet(api: &impl Api, plan: &Plan, check: &Check) -> Result<Option<String>> {
    let name = name(check);
    let not = |holds: bool| (!holds).then(|| format!("not yet: {name}"));
    Ok(match check {
        Check::Exists { object } => not(api.get(object).await?.is_some()),
        Check::Absent { object } => not(api.get(object).await?.is_none()),
        Check::Field {
            object,
            pointer,
            equals,
        } => {
            let live = api.get(object).await?;
            let value = live.as_ref().and_then(|live| live.pointer(pointer));
            not(value.unwrap_or(&Value::Null) == equals)
        }
        Check::RolledOut { object } => {
            let live = api.get(object).await?;
            not(live.is_some_and(|live| is_rolled_out(live.value())))
        }
        Check::Root {
            namespace,
            fingerprint,
        } => root(api, namespace, fingerprint).await?,
        Check::SameTrust { namespace, other } => {
            let told = |namespace: &str| {
                ObjectRef::namespaced("v1", "ConfigMap", namespace, ROOT_CONFIG_MAP)
            };
            let one = api.get(&told(namespace)).await?;
            let two = api.get(&told(other)).await?;
            let (one, two) = (one.as_ref(), two.as_ref());
            not(one.is_some()
                && one.and_then(|o| o.pointer("/data")) == two.and_then(|o| o.pointer("/data")))
        }
        Check::Armed { object } => not(api.get(object).await?.is_some_and(|live| is_armed(&live))),
        Check::Injects {
            namespace,
            labels,
            istiod,
        } => injects(api, namespace, labels, istiod).await?,
        Check::OneInjector => one_injector(api, plan).await?,
        Check::Refreshed {
            workload,
            revision,
            istiod,
            by,
        } => refreshed(api, workload, revision.as_deref(), (istiod, by)).await?,
        Check::Drained {
            namespace,
            revision,
        } => drained(api, namespace, revision).await?,
        Check::Unreferenced { host } => unreferenced(api, host).await?,
        Check::Mirrored {
            pairs,
            stay,
            same,
            from,
            to,
        } => mirrored(api, pairs, stay, *same, (from, to)).await?,
        Check::Undeletable { object } => undeletable(api, object).await?,
        Check::NotPurged { objects } => {
            for object in objects {
                if api
                    .get(object)
                    .await?
                    .is_some_and(|live| live.label(PURGED).is_some())
                {
                    return Ok(Some(format!(
                        "{object} carries {PURGED} again, by which a purge finds it: take the label off"
                    )));
                }
            }
            None
        }
        Check::MeshRoot {
            namespace,
            revision,
            root,
            other,
            policies,
        } => mesh_root(api, (namespace, revision), root, other, policies).await?,
        Check::Replaced {
            route,
            serves,
            not,
            gateway,
            namespace,
        } => replaced(api, route, serves, not, gateway, namespace).await?,
        Check::Guarded {
            not,
            gateway,
            namespace,
        } => {
            let root = plan.to.as_ref().unwrap_or(&plan.from).namespace.as_str();
            guarded(api, not, gateway, namespace, root).await?
        }
        Check::Programmed {
            object,
            gateway,
            namespace,
        } => programmed(api, object, gateway, namespace).await?,
    })
}

fn is_armed(live: &Object) -> bool {
    let entries = live.pointer("/webhooks").and_then(Value::as_array);
    let closed = live.kind() == "ValidatingWebhookConfiguration";
    entries.into_iter().flatten().all(|entry| {
        let bundle = entry
            .pointer("/clientConfig/caBundle")
            .and_then(Value::as_str);
        bundle.is_some_and(|bundle| !bundle.is_empty())
            && (!closed || entry["failurePolicy"] == "Fail")
    })
}

async fn root(api: &impl Api, namespace: &str, fingerprint: &str) -> Result<Option<String>> {
    for secret in CA_SECRETS {
        if let Some(found) = inventory::root(api, namespace, secret).await? {
            let same = found.fingerprint == fingerprint;
            return Ok((!same).then(|| format!("Secret {namespace}/{secret} holds another CA")));
        }
    }
    Ok(Some(format!("namespace {namespace} holds no CA")))
}

async fn injects(
    api: &impl Api,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    istiod: &str,
) -> Result<Option<String>> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "istio-migrate-probe", "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "probe", "image": "probe"}]},
    });
    match api.create(&Object::new(pod)?, true).await {
        Ok(tried) => {
            let told = tried.value()["spec"].to_string().contains(istiod);
            Ok((!told).then(|| format!("a pod in {namespace} would not be told {istiod}")))
        }
        Err(error @ (Error::WebhookUnavailable { .. } | Error::Denied { .. })) => {
            Ok(Some(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

async fn one_injector(api: &impl Api, plan: &Plan) -> Result<Option<String>> {
    let list = Query::list(ADMISSION, "MutatingWebhookConfiguration");
    let read = api.read(&[list]).await?;
    let all: Vec<&Object> = read
        .list(ADMISSION, "MutatingWebhookConfiguration")
        .collect();
    for permutation in &plan.injected {
        let found = webhooks::injectors_of(all.iter().copied(), permutation);
        if found.len() != 1 {
            return Ok(Some(format!("{found:?} inject {permutation:?}")));
        }
    }
    let several = webhooks::injectors(all, &[]);
    let several = several.into_iter().find(|(_, found)| found.len() > 1);
    Ok(several.map(|(permutation, found)| format!("{found:?} inject {permutation:?}")))
}

async fn refreshed(
    api: &impl Api,
    workload: &ObjectRef,
    revision: Option<&str>,
    (istiod, by): (&str, &str),
) -> Result<Option<String>> {
    let Some(live) = api.get(workload).await? else {
        return Ok(None);
    };
    if !is_rolled_out(live.value()) {
        return Ok(Some(format!("{workload} is not rolled out")));
    }
    let pods = perform::pods(api, workload).await?;
    let old = |pod: &&inventory::Pod| revision.is_some() && pod.revision.as_deref() != revision;
    if let Some(pod) = pods.iter().find(|pod| old(pod) || !pod.ready) {
        return Ok(Some(format!(
            "pod {}/{} is not refreshed",
            pod.namespace, pod.name
        )));
    }
    if pods.is_empty() {
        return Ok(None);
    }
    let served = api.proxies().await?;
    let home = format!(".{istiod}");
    for pod in &pods {
        let proxy = format!("{}.{}", pod.name, pod.namespace);
        let on = served.iter().any(|status| {
            status.proxy == proxy && status.istiod.ends_with(&home) && status.revision == by
        });
        if !on {
            return Ok(Some(format!(
                "proxy {proxy} is not connected to istiod {by} in {istiod}"
            )));
        }
    }
    Ok(None)
}

async fn drained(api: &impl Api, namespace: &str, revision: &str) -> Result<Option<String>> {
    let home = format!(".{namespace}");
    let served = api.proxies().await?;
    let left = served
        .iter()
        .find(|status| status.istiod.ends_with(&home) && status.revision == revision);
    Ok(left.map(|status| format!("proxy {} is connected to {}", status.proxy, status.istiod)))
}

async fn unreferenced(api: &impl Api, host: &str) -> Result<Option<String>> {
    let namespaces = api
        .read(&[Query::list("", "Namespace").metadata_only()])
        .await?;
    for namespace in namespaces.list("", "Namespace") {
        let list = Query::list("", "Pod").in_namespace(namespace.name());
        let read = api.read(&[list]).await?;
        let names = |pod: &&Object| !pod.is_terminating() && names_istiod(pod, host);
        if let Some(pod) = read.list("", "Pod").find(names) {
            return Ok(Some(format!(
                "{} names {host}: restart what it belongs to",
                pod.id()
            )));
        }
    }
    Ok(None)
}

/// Whether a proxy of the pod is told the address of istiod `host`.
fn names_istiod(pod: &Object, host: &str) -> bool {
    let containers = |list: &str| {
        let items = pod.pointer(list).and_then(Value::as_array);
        items.into_iter().flatten()
    };
    let proxies = containers("/spec/containers")
        .chain(containers("/spec/initContainers"))
        .filter(|container| container["name"] == "istio-proxy");
    let env = proxies
        .filter_map(|proxy| proxy["env"].as_array())
        .flatten();
    env.filter(|variable| variable["name"] != NOT_AN_ADDRESS)
        .any(|variable| {
            variable["value"]
                .as_str()
                .is_some_and(|value| value.contains(host))
        })
}

async fn mirrored(
    api: &impl Api,
    pairs: &[(ObjectRef, ObjectRef)],
    stay: &[ObjectRef],
    same: bool,
    (from, to): (&str, &str),
) -> Result<Option<String>> {
    let list =
        |(group, kind): &(&str, &str), namespace| Query::list(group, kind).in_namespace(namespace);
    let queries = KINDS.iter().map(|kind| list(kind, from));
    let queries: Vec<Query> = queries
        .chain(KINDS.iter().map(|kind| list(kind, to)))
        .collect();
    let read = api.read(&queries).await?;
    let originals = read.objects().filter(|object| {
        object.namespace() == Some(from)
            && object.label(COPY_OF).is_none()
            && !stay.iter().any(|id| id.same_object(&object.id()))
    });
    for original in originals {
        let id = original.id();
        let known = pairs.iter().find(|(one, _)| one.same_object(&id));
        if let Some((_, copy)) = known {
            let Some(there) = read.find(copy) else {
                return Ok(Some(format!("{copy} is missing")));
            };
            if same && original.pointer("/spec") != there.pointer("/spec") {
                return Ok(Some(format!("{copy} says something else than {id}")));
            }
            continue;
        }
        let mut others = read
            .list(&id.group, &id.kind)
            .filter(|other| other.namespace() == Some(to));
        if others.any(|other| other.pointer("/spec") == original.pointer("/spec"))
            || holds_at_home(api, original, from).await?
        {
            continue;
        }
        return Ok(Some(format!(
            "{id} was made since the plan was and holds for the mesh: make the same one in {to}"
        )));
    }
    Ok(None)
}

/// Whether an object of the root namespace means pods of that namespace alone.
async fn holds_at_home(api: &impl Api, object: &Object, root: &str) -> Result<bool> {
    let class = match meaning(object, root) {
        Meaning::Of(class) => class,
        Meaning::OfPods(selector) => {
            let labels = selector
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
            let labels: Vec<String> = labels.collect();
            let list = Query::list("", "Pod").with_labels(&labels.join(","));
            let read = api.read(&[list.metadata_only()]).await?;
            let pods = read.list("", "Pod").filter_map(Object::namespace);
            class_of_pods(pods, root)
        }
    };
    Ok(class == Class::P2)
}

async fn undeletable(api: &impl Api, object: &ObjectRef) -> Result<Option<String>> {
    let tried = Delete {
        dry_run: true,
        ..Delete::default()
    };
    match api.delete(object, &tried).await {
        Ok(true) => Ok(Some(format!("{object} can be deleted"))),
        Ok(false) | Err(Error::Denied { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Proxies whose configuration is looked at.
const SAMPLE: usize = 20;

async fn mesh_root(
    api: &impl Api,
    (namespace, revision): (&str, &str),
    root: &str,
    other: &str,
    policies: &[String],
) -> Result<Option<String>> {
    let roots = api.mesh_roots(namespace, revision).await?;
    if let Some(old) = roots.iter().find(|found| *found != root) {
        return Ok(Some(format!("an istiod works with root namespace {old}")));
    }
    let home = format!(".{namespace}");
    let served = api.proxies().await?;
    let served = served
        .iter()
        .filter(|status| status.istiod.ends_with(&home) && status.revision == revision)
        .filter_map(|status| status.proxy.rsplit_once('.'))
        // What lives in the other namespace has its policies as its own.
        .filter(|(_, namespace)| *namespace != other);
    for (pod, namespace) in served.take(SAMPLE) {
        let config = match api.proxy_config(namespace, pod).await {
            // A pod that went since it was listed has no say.
            Err(Error::NotFound { .. }) => continue,
            config => config?,
        };
        let old = policies
            .iter()
            .find(|policy| config.contains(&format!("ns[{other}]-policy[{policy}]")));
        if let Some(policy) = old {
            return Ok(Some(format!(
                "proxy {pod}.{namespace} still runs with {policy} of {other}"
            )));
        }
    }
    Ok(None)
}

/// What the gateways' proxies run with.
///
/// `None` where none runs: nobody can tell then.
async fn gateway_configs(
    api: &impl Api,
    gateway: &BTreeMap<String, String>,
    namespace: &str,
) -> Result<Option<Vec<String>>> {
    let selector: Vec<String> = gateway.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let list = Query::list("", "Pod")
        .in_namespace(namespace)
        .with_labels(&selector.join(","));
    let read = api.read(&[list]).await?;
    let mut found = Vec::new();
    for pod in read.list("", "Pod").filter(|pod| !pod.is_terminating()) {
        found.push(api.proxy_config(namespace, pod.name()).await?);
    }
    Ok((!found.is_empty() && !gateway.is_empty()).then_some(found))
}

fn no_gateway(namespace: &str) -> String {
    format!("no gateway runs in {namespace}")
}

/// How Envoy's configuration names the origin of a route or a rule.
fn mark(object: &ObjectRef) -> String {
    let namespace = object.namespace.as_deref().unwrap_or_default();
    match object.kind.as_str() {
        "VirtualService" => format!("/namespaces/{namespace}/virtual-service/{}", object.name),
        "AuthorizationPolicy" => format!("ns[{namespace}]-policy[{}]", object.name),
        _ => object.name.clone(),
    }
}

async fn programmed(
    api: &impl Api,
    object: &ObjectRef,
    gateway: &BTreeMap<String, String>,
    namespace: &str,
) -> Result<Option<String>> {
    if api.get(object).await?.is_none() {
        return Ok(Some(format!("{object} is not there")));
    }
    let mark = mark(object);
    let Some(configs) = gateway_configs(api, gateway, namespace).await? else {
        return Ok(Some(no_gateway(namespace)));
    };
    let lacking = configs.iter().any(|config| !config.contains(&mark));
    Ok(lacking.then(|| format!("a gateway does not run with {object} yet")))
}

async fn replaced(
    api: &impl Api,
    route: &ObjectRef,
    wanted: &[(String, String)],
    not: &[ObjectRef],
    gateway: &BTreeMap<String, String>,
    namespace: &str,
) -> Result<Option<String>> {
    let read = api
        .read(&[Query::list(NETWORKING, "VirtualService")])
        .await?;
    if wanted.is_empty() {
        return Ok(Some(format!("what {route} serves cannot be told")));
    }
    let short = |host: &str| host.trim_end_matches(".svc.cluster.local").to_owned();
    let others = read
        .list(NETWORKING, "VirtualService")
        .filter(|other| !not.iter().any(|id| id.same_object(&other.id())));
    let others: Vec<(ObjectRef, Vec<(String, String)>)> =
        others.map(|other| (other.id(), serves(other))).collect();
    for (path, host) in wanted {
        let found = others.iter().find(|(_, serves)| {
            serves
                .iter()
                .any(|(p, h)| p == path && short(h) == short(host))
        });
        let Some((id, _)) = found else {
            return Ok(Some(format!("nobody else serves {path} of {route} yet")));
        };
        if let Some(why) = programmed(api, id, gateway, namespace).await? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

async fn guarded(
    api: &impl Api,
    not: &[ObjectRef],
    gateway: &BTreeMap<String, String>,
    namespace: &str,
    root: &str,
) -> Result<Option<String>> {
    let read = api
        .read(&[
            Query::list(NETWORKING, "EnvoyFilter"),
            Query::list("security.istio.io", "AuthorizationPolicy"),
        ])
        .await?;
    // A filter may say more of the gateway's pods than its Gateway does; the proxies tell whether it
    // reaches all of them.
    let guards = read.objects().filter(|object| {
        let home = object.namespace().unwrap_or_default();
        let spec = &object.value()["spec"];
        let (labels, asking) = match object.kind() {
            "EnvoyFilter" => (&spec["workloadSelector"]["labels"], asks(object)),
            _ => (&spec["selector"]["matchLabels"], spec["action"] == "CUSTOM"),
        };
        let mut labels = labels.as_object().into_iter().flatten();
        (home == namespace || home == root)
            && asking
            && labels.all(|(key, value)| gateway.get(key).is_none_or(|of| value == of.as_str()))
            && !not.iter().any(|id| id.same_object(&object.id()))
    });
    let guards: Vec<&Object> = guards.collect();
    let Some(first) = guards.first() else {
        return Ok(Some("nobody else guards the gateway yet".to_owned()));
    };
    let Some(configs) = gateway_configs(api, gateway, namespace).await? else {
        return Ok(Some(no_gateway(namespace)));
    };
    let old: Vec<&Object> = not.iter().filter_map(|id| read.find(id)).collect();
    let stands = |guard: &&Object| {
        let mut configs = configs.iter();
        configs.all(|config| runs_with_guard(config, guard, &old))
    };
    let lacking = !guards.iter().any(stands);
    Ok(lacking.then(|| format!("a gateway does not run with {} yet", first.id())))
}

/// Whether a proxy asks as `guard` says. A filter's object is not named in Envoy's configuration: the
/// filter itself is, or, where the old ones call theirs the same, how many there are.
fn runs_with_guard(config: &str, guard: &Object, old: &[&Object]) -> bool {
    if guard.kind() == "AuthorizationPolicy" {
        return config.contains(&mark(&guard.id()));
    }
    let names = asking_filters(guard);
    let others: Vec<String> = old
        .iter()
        .flat_map(|filter| asking_filters(filter))
        .collect();
    if let Some(own) = names.iter().find(|name| !others.contains(name)) {
        return named(config, own) > 0;
    }
    let Some(name) = names.first() else {
        return false;
    };
    // Each of them is in every listener that it is for: the one in most of them counts.
    named(config, name) > others.iter().filter(|other| *other == name).count()
}

/// How often a configuration calls something by a name.
fn named(config: &str, name: &str) -> usize {
    let quoted = format!("\"{name}\"");
    let found = config.match_indices(&quoted);
    let is_name = |(at, _): &(usize, &str)| {
        let before = config[..*at].trim_end().strip_suffix(':');
        before.is_some_and(|before| before.trim_end().ends_with("\"name\""))
    };
    found.filter(is_name).count()
}

/// Names of the filters by which an `EnvoyFilter` has requests asked about, a patch each.
fn asking_filters(filter: &Object) -> Vec<String> {
    let patches = filter.pointer("/spec/configPatches");
    let patches = patches.and_then(Value::as_array).into_iter().flatten();
    let values = patches.map(|patch| &patch["patch"]["value"]);
    let asking = values.filter(|value| {
        let kind = value["typed_config"]["@type"].as_str().unwrap_or_default();
        kind.ends_with("ext_authz.v3.ExtAuthz") || value["name"] == "envoy.filters.http.ext_authz"
    });
    asking
        .filter_map(|value| value["name"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(name: &str, ports: &[u16]) -> Object {
        let patches = ports.iter().map(|port| {
            json!({"match": {"listener": {"portNumber": port}}, "patch": {"value": {"name": name}}})
        });
        let patches: Vec<Value> = patches.collect();
        Object::new(json!({
            "apiVersion": "networking.istio.io/v1alpha3", "kind": "EnvoyFilter",
            "metadata": {"name": "some", "namespace": "istio-lab"},
            "spec": {"configPatches": patches},
        }))
        .expect("an object")
    }

    #[test]
    fn a_filter_of_another_name_is_in_force_when_a_proxy_has_that_name() {
        let old = filter("envoy.filters.http.ext_authz", &[8080, 8443]);
        let mut new = filter("ours.ext_authz", &[8080]).into_value();
        new["spec"]["configPatches"][0]["patch"]["value"]["typed_config"]["@type"] =
            "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz".into();
        let new = Object::new(new).expect("an object");
        let check = |config: &str, expect: bool| {
            assert_eq!(runs_with_guard(config, &new, &[&old]), expect, "{config}");
        };
        check(r#"{"name": "ours.ext_authz"}"#, true);
        check(r#"{"name":"ours.ext_authz"}"#, true);
        check(
            r#"{"typed_per_filter_config": {"ours.ext_authz": {}}}"#,
            false,
        );
        check(r#"[{"name": "envoy.filters.http.ext_authz"}]"#, false);
    }

    #[test]
    fn a_filter_of_the_same_name_is_in_force_when_a_proxy_has_more_of_them() {
        let name = "envoy.filters.http.ext_authz";
        let (old, new) = (filter(name, &[8080, 8443]), filter(name, &[8080]));
        let times = |count: usize| format!(r#"{{"name": "{name}"}}"#).repeat(count);
        assert!(!runs_with_guard(&times(2), &new, &[&old]));
        assert!(runs_with_guard(&times(3), &new, &[&old]));
        assert!(runs_with_guard(&times(1), &new, &[]));
        assert!(!runs_with_guard("", &new, &[]));
    }
}

//! The two charms in place of the one: routes and authorization change hands without a gap.
//!
//! An application holds one ingress relation at a time, and the old charm deletes a route the instant
//! its relation breaks. So copies of the routes and of the authorization filter are laid beside the
//! old ones first, owned by the migration, and each is lifted when the integrator's own object is in
//! the gateways' proxies.

use std::collections::BTreeMap;

use istio_api::ObjectRef;
use kube_apply::Object;
use serde_json::{Value, json};

use super::data::{Action, Check, Phase, Plan, Step};
use super::guard::{id, keep_policy};
use super::{GatewayChoice, Request, Split};
use crate::api::MANAGER;
use crate::inventory::{Snapshot, Source};

const NETWORKING: &str = "networking.istio.io";
const SCOPE: &str = "kubernetes-resource-handler-scope";
/// Label of the copies.
pub(super) const BRIDGE: &str = "istio-migrate/bridge";
/// Label of what the old gateway charm may not delete.
const KEEP: &str = "istio-migrate/keep";
const KEEPER: &str = "istio-migration-gateway";
/// Endpoints of the old charm and of the integrator.
const INGRESS: &str = "ingress";
const AUTH: &str = "ingress-auth";

/// What the old charm wrote.
pub(super) struct Pilot<'a> {
    pub(super) routes: Vec<&'a Object>,
    guards: Vec<&'a Object>,
    /// Filters that ask an authorizer and are somebody else's.
    others: Vec<&'a Object>,
    gateways: Vec<&'a Object>,
    selector: BTreeMap<String, String>,
}

impl<'a> Pilot<'a> {
    pub(super) fn find(snapshot: &'a Snapshot, namespace: &str, split: &Split) -> Self {
        let own = format!("{}-{namespace}", split.pilot);
        let scoped = |kind: &'a str, scope: &'a str| -> Vec<&'a Object> {
            let list = snapshot.objects.list(NETWORKING, kind);
            list.filter(|object| {
                object.label("app.kubernetes.io/instance") == Some(own.as_str())
                    && object.label(SCOPE) == Some(scope)
            })
            .collect()
        };
        let gateways = scoped("Gateway", "gateway");
        let selector = gateways
            .first()
            .and_then(|g| g.pointer("/spec/selector")?.as_object());
        let selector = selector.into_iter().flatten();
        // The old charm marks its filter with nothing but its name.
        let filter = format!("{}-authn-filter", split.pilot);
        let filters = snapshot.objects.list(NETWORKING, "EnvoyFilter");
        let (guards, others) = filters
            .filter(|f| f.namespace() == Some(namespace) && f.label(BRIDGE).is_none())
            .filter(|f| asks(f))
            .partition(|f| f.name() == filter);
        Self {
            routes: scoped("VirtualService", "ingress"),
            guards,
            others,
            gateways,
            selector: selector
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
        }
    }

    /// Whether there is anything by which the old charm is known.
    pub(super) fn is_known(&self) -> bool {
        !(self.routes.is_empty() && self.gateways.is_empty() && self.guards.is_empty())
    }

    /// Whether it is known which pods its routes are for.
    pub(super) fn has_gateway(&self) -> bool {
        !self.selector.is_empty()
    }

    /// The gateways' proxies run with the object, or, for what leaves no name there, it exists.
    fn in_force(&self, object: ObjectRef, namespace: &str) -> Check {
        if object.kind == "VirtualService" {
            Check::Programmed {
                object,
                gateway: self.selector.clone(),
                namespace: namespace.to_owned(),
            }
        } else {
            Check::Exists { object }
        }
    }

    /// A copy that the old charm does not know.
    fn copy(&self, original: &Object, plan: &str, namespace: &str) -> Value {
        let mut spec = original.value()["spec"].clone();
        // The copy of a route hangs on the copy of the gateway as well: the old charm deletes its
        // gateway when authorization fails.
        if let Some(gateways) = spec.get_mut("gateways").and_then(Value::as_array_mut) {
            let copies = self.gateways.iter();
            gateways.extend(
                copies.map(|g| Value::from(format!("{namespace}/{}", copy_name(g.name())))),
            );
        }
        json!({
            "apiVersion": original.id().api_version(), "kind": original.kind(),
            "metadata": {
                "name": copy_name(original.name()), "namespace": original.namespace(),
                "labels": {BRIDGE: plan},
            },
            "spec": spec,
        })
    }
}

/// Whether a filter has requests asked about.
pub(crate) fn asks(filter: &Object) -> bool {
    let spec = filter.value()["spec"].to_string();
    spec.contains("envoy.filters.http.ext_authz") || spec.contains("ext_authz.v3.ExtAuthz\"")
}

/// The steps.
pub(super) fn steps(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    request: &Request,
    split: &Split,
) {
    let namespace = source.plane.namespace.as_str();
    let pilot = Pilot::find(snapshot, namespace, split);
    if request.target.is_none() {
        plan.steps.extend(adopt(source, request));
    }
    for other in &pilot.others {
        plan.notes.push(format!(
            "{} asks an authorizer and is not {}'s: it stays as it is",
            other.id(),
            split.pilot
        ));
    }
    plan.steps.push(bridge(&plan.id, &pilot, namespace, split));
    let home = request
        .target
        .as_ref()
        .map(|target| target.namespace.as_str());
    plan.steps.push(deploy(split, namespace, home));
    plan.steps.extend(authorization(&pilot, namespace, split));
    for route in &pilot.routes {
        plan.steps.push(hand_over(route, &pilot, namespace, split));
        let name = format!("lift-{}", route.name());
        let step = lift(&name, &[*route], &pilot, &plan.id, namespace);
        plan.steps.push(step);
    }
    for (name, originals) in [
        ("lift-authorization", &pilot.guards),
        ("lift-gateway", &pilot.gateways),
    ] {
        if !originals.is_empty() {
            let step = lift(name, originals, &pilot, &plan.id, namespace);
            plan.steps.push(step);
        }
    }
    gateway(plan, snapshot, namespace, request, split);
    let mut step = remove(namespace, split);
    // Any of the old charm's own hooks may have run its installer again since they were taken off.
    step.effect.extend(super::guard::strip(snapshot));
    step.after.extend(super::guard::not_purged(snapshot));
    plan.steps.push(step);
    plan.steps.push(sweep(snapshot, &pilot));
}

/// Makes the control plane the new owner's where it is.
fn adopt(source: &Source<'_>, request: &Request) -> Option<Step> {
    let owner = request.owner.as_ref()?;
    let mut step = Step::new(
        "adopt",
        Phase::HandOver,
        "make the control plane the new application's",
        "Nothing of it changes but whose it is: the new application finds what it would have made.",
    );
    let mut objects = source.remains();
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        objects.extend(source.webhooks(kind).into_iter().map(Object::id));
    }
    let namespace = &source.plane.namespace;
    objects.push(ObjectRef::namespaced(
        "v1",
        "Service",
        namespace,
        &source.service_name(),
    ));
    for object in objects.into_iter().filter(|o| o.kind != "Lease") {
        let none: BTreeMap<&String, Value> =
            owner.labels.keys().map(|k| (k, Value::Null)).collect();
        let patch = |labels: Value| Action::Patch {
            object: object.clone(),
            patch: json!({"metadata": {"labels": labels}}),
        };
        step.effect.push(patch(json!(owner.labels)));
        step.undo.push(patch(json!(none)));
    }
    Some(step)
}

/// Name of a copy.
fn copy_name(name: &str) -> String {
    format!("{name}-bridge")
}

fn copy_id(object: &Object) -> ObjectRef {
    let ObjectRef { name, .. } = object.id();
    ObjectRef {
        name: copy_name(&name),
        ..object.id()
    }
}

fn bridge(plan: &str, pilot: &Pilot<'_>, namespace: &str, split: &Split) -> Step {
    let mut step = Step::new(
        "bridge-routes",
        Phase::HandOver,
        "lay copies of routes and authorization beside the old charm's",
        "The old charm deletes a route, and the authorization filter, the instant a relation breaks.",
    );
    // Protection first, then what it protects.
    for original in pilot
        .guards
        .iter()
        .chain(&pilot.gateways)
        .chain(&pilot.routes)
    {
        let copy = pilot.copy(original, plan, namespace);
        let object = id(&copy);
        step.effect.push(Action::Apply {
            object: copy,
            manager: MANAGER.to_owned(),
        });
        step.undo.insert(
            0,
            Action::Delete {
                object: object.clone(),
            },
        );
        step.undone.push(Check::Absent {
            object: object.clone(),
        });
        step.after.push(pilot.in_force(object, namespace));
        // Whoever uses a copy loses it here: what it stands in for has to be back.
        step.before_undo
            .push(pilot.in_force(original.id(), namespace));
    }
    if !pilot.guards.is_empty() {
        step.reverse.extend(relate(
            &split.authorizer,
            AUTH,
            &split.integrator,
            &split.pilot,
        ));
    }
    for route in &pilot.routes {
        let application = application(route, split);
        step.reverse.extend(relate(
            application,
            INGRESS,
            &split.integrator,
            &split.pilot,
        ));
    }
    step
}

fn deploy(split: &Split, namespace: &str, home: Option<&str>) -> Step {
    let Split {
        daemon, integrator, ..
    } = split;
    let mut step = Step::new(
        "deploy-integrator",
        Phase::HandOver,
        "deploy the integrator",
        "It finds the gateways that there are, whoever made them.",
    );
    // While the old control plane is not removed, there are two.
    let which = home.map(|home| format!(" --config istio-namespace={home}"));
    let which = which.unwrap_or_default();
    step.commands = vec![
        format!("juju deploy istio-integrator {integrator} --trust{which}"),
        format!("juju integrate {daemon}:istio-metadata {integrator}:istio-metadata"),
    ];
    step.reverse = vec![format!("juju remove-application {integrator} --no-prompt")];
    let object = pods(namespace, integrator);
    step.after.push(Check::Exists {
        object: object.clone(),
    });
    step.undone.push(Check::Absent { object });
    step
}

fn authorization(pilot: &Pilot<'_>, namespace: &str, split: &Split) -> Option<Step> {
    if pilot.guards.is_empty() {
        return None;
    }
    let mut step = Step::new(
        "hand-over-authorization",
        Phase::HandOver,
        "have the integrator guard the gateway",
        "The copy of the old filter guards it meanwhile; both may ask at once, which denies what either \
         denies.",
    );
    step.commands = relate(&split.authorizer, AUTH, &split.pilot, &split.integrator);
    step.reverse = relate(&split.authorizer, AUTH, &split.integrator, &split.pilot);
    for guard in &pilot.guards {
        step.undone.push(Check::Exists { object: guard.id() });
    }
    let mut not: Vec<ObjectRef> = pilot.guards.iter().map(|g| g.id()).collect();
    not.extend(pilot.guards.iter().map(|g| copy_id(g)));
    step.after.push(Check::Guarded {
        not,
        gateway: pilot.selector.clone(),
        namespace: namespace.to_owned(),
    });
    Some(step)
}

/// The application that a route is of.
fn application<'a>(route: &'a Object, split: &'a Split) -> &'a str {
    let name = route.name();
    let mut known = split.applications.iter();
    let known = known.find(|application| name.starts_with(application.as_str()));
    known.map_or(name, String::as_str)
}

/// Has an application's relation go from one application to another.
fn relate(application: &str, endpoint: &str, from: &str, to: &str) -> Vec<String> {
    vec![
        format!("juju remove-relation {from}:{endpoint} {application}:{endpoint}"),
        format!("juju integrate {to}:{endpoint} {application}:{endpoint}"),
    ]
}

fn hand_over(route: &Object, pilot: &Pilot<'_>, namespace: &str, split: &Split) -> Step {
    let name = route.name();
    let mut step = Step::new(
        &format!("hand-over-{name}"),
        Phase::HandOver,
        &format!("have the integrator serve what {name} serves"),
        "The copy serves meanwhile; it goes once the integrator's route is in the gateways' proxies.",
    );
    let application = application(route, split);
    step.commands = relate(application, INGRESS, &split.pilot, &split.integrator);
    step.reverse = relate(application, INGRESS, &split.integrator, &split.pilot);
    step.undone.push(pilot.in_force(route.id(), namespace));
    let mut not: Vec<ObjectRef> = pilot.routes.iter().map(|r| r.id()).collect();
    not.extend(pilot.routes.iter().map(|r| copy_id(r)));
    step.after.push(Check::Replaced {
        route: route.id(),
        serves: serves(route),
        not,
        gateway: pilot.selector.clone(),
        namespace: namespace.to_owned(),
    });
    step
}

/// What a route matches, and where it sends it.
pub(crate) fn serves(route: &Object) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let rules = route.pointer("/spec/http").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        let host = rule
            .pointer("/route/0/destination/host")
            .and_then(Value::as_str);
        for condition in rule["match"].as_array().into_iter().flatten() {
            let uri = &condition["uri"];
            let path = uri["prefix"].as_str().or_else(|| uri["exact"].as_str());
            if let (Some(path), Some(host)) = (path, host) {
                // `/a` and `/a/` are one prefix to an integrator that keeps to segments.
                let path = path.trim_end_matches('/').to_owned();
                found.push((path, host.to_owned()));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn lift(name: &str, originals: &[&Object], pilot: &Pilot<'_>, plan: &str, namespace: &str) -> Step {
    let mut step = Step::new(
        name,
        Phase::HandOver,
        "lift the copy",
        "The integrator's own object does its work.",
    );
    for original in originals {
        let object = copy_id(original);
        step.effect.push(Action::Delete {
            object: object.clone(),
        });
        step.after.push(Check::Absent {
            object: object.clone(),
        });
        step.undo.push(Action::Apply {
            object: pilot.copy(original, plan, namespace),
            manager: MANAGER.to_owned(),
        });
        step.undone.push(pilot.in_force(object, namespace));
    }
    step
}

/// The gateway's objects, as the old gateway charm names them.
fn gateway_objects(snapshot: &Snapshot, namespace: &str) -> Vec<ObjectRef> {
    let base = "istio-ingressgateway-workload";
    let objects = [
        ("v1", "ServiceAccount", format!("{base}-service-account")),
        ("v1", "Service", base.to_owned()),
        ("apps/v1", "Deployment", base.to_owned()),
        (
            "rbac.authorization.k8s.io/v1",
            "Role",
            format!("{base}-sds"),
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            format!("{base}-sds"),
        ),
    ];
    objects
        .iter()
        .map(|(version, kind, name)| ObjectRef::namespaced(version, kind, namespace, name))
        .filter(|id| snapshot.objects.find(id).is_some())
        .collect()
}

fn gateway(
    plan: &mut Plan,
    snapshot: &Snapshot,
    namespace: &str,
    request: &Request,
    split: &Split,
) {
    let objects = gateway_objects(snapshot, namespace);
    match request.gateway {
        GatewayChoice::Stay => plan.notes.push(format!(
            "{} keeps the gateway: its objects no longer carry the label that a purge looks for, and \
             the address stays",
            split.gateway
        )),
        GatewayChoice::KeepAddress => keep(plan, namespace, request, split, &objects),
        GatewayChoice::NewAddress => beside(plan, snapshot, namespace, request, split),
    }
}

fn keep(plan: &mut Plan, namespace: &str, request: &Request, split: &Split, objects: &[ObjectRef]) {
    let label = |object: &ObjectRef, value: Value| Action::Patch {
        object: object.clone(),
        patch: json!({"metadata": {"labels": {KEEP: value}}}),
    };
    let mut step = Step::new(
        "keep-gateway",
        Phase::HandOver,
        "refuse every deletion of the gateway's objects",
        "The old gateway charm deletes its Deployment and its Service by name when it goes, and with the \
         Service the address.",
    );
    for object in keep_policy(KEEPER, KEEP) {
        step.undo.insert(
            0,
            Action::Delete {
                object: id(&object),
            },
        );
        step.undone.push(Check::Absent {
            object: id(&object),
        });
        step.effect.push(Action::Apply {
            object,
            manager: MANAGER.to_owned(),
        });
    }
    for object in objects {
        step.effect.push(label(object, plan.id.as_str().into()));
        step.undo.push(label(object, Value::Null));
        step.after.push(Check::Undeletable {
            object: object.clone(),
        });
    }
    plan.steps.push(step);
    let mut step = gone(
        "remove-gateway-application",
        "remove the old gateway application",
        namespace,
        &split.gateway,
    );
    step.commands = vec![
        format!(
            "juju remove-application {} --force --no-wait --no-prompt",
            split.gateway
        ),
        "# its remove hook fails, because nothing lets it delete the gateway: that is meant"
            .to_owned(),
    ];
    plan.steps.push(step);
    let mut step = Step::new(
        "adopt-gateway",
        Phase::HandOver,
        "make the gateway the new owner's, and lift its guard",
        "The same Service object, the same address.",
    );
    step.forward_only = true;
    let owner = request.owner.as_ref().map(|owner| json!(owner.labels));
    for object in objects {
        let mut labels = owner.clone().unwrap_or_else(|| json!({}));
        labels[KEEP] = Value::Null;
        step.effect.push(Action::Patch {
            object: object.clone(),
            patch: json!({"metadata": {"labels": labels}}),
        });
        step.after.push(Check::Exists {
            object: object.clone(),
        });
    }
    let [policy, binding] = keep_policy(KEEPER, KEEP);
    for object in [binding, policy] {
        step.effect.push(Action::Delete {
            object: id(&object),
        });
    }
    plan.steps.push(step);
}

/// A second gateway: every policy that names the first one's identity names both.
fn beside(plan: &mut Plan, snapshot: &Snapshot, namespace: &str, request: &Request, split: &Split) {
    let old = format!("/ns/{namespace}/sa/istio-ingressgateway-workload-service-account");
    let home = request
        .target
        .as_ref()
        .map_or(namespace, |target| target.namespace.as_str());
    let new = format!("/ns/{home}/sa/istio-ingressgateway");
    let mut step = Step::new(
        "principals",
        Phase::HandOver,
        "let policies that name the old gateway's identity name the new one's as well",
        "They would deny everything that comes through the new gateway.",
    );
    for policy in snapshot
        .objects
        .list("security.istio.io", "AuthorizationPolicy")
    {
        let mut spec = policy.value()["spec"].clone();
        if !extend_principals(&mut spec, &old, &new) {
            continue;
        }
        let patch = |spec: &Value| Action::Patch {
            object: policy.id(),
            patch: json!({"spec": {"rules": spec["rules"]}}),
        };
        step.effect.push(patch(&spec));
        step.undo.push(patch(&policy.value()["spec"]));
    }
    plan.steps.push(step);
    let mut step = gone(
        "new-gateway",
        "move clients to the new gateway, then remove the old one",
        namespace,
        &split.gateway,
    );
    step.commands = vec![
        format!(
            "juju config {} gateways='[{{name: istio-ingressgateway, namespace: {home}}}]'",
            split.daemon
        ),
        "# point DNS at the new Service's address; wait until the old gateway serves nobody"
            .to_owned(),
        format!("juju remove-application {}", split.gateway),
    ];
    plan.steps.push(step);
}

/// Adds `new` wherever `old` stands in a list of principals; whether there was any.
fn extend_principals(value: &mut Value, old: &str, new: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter_mut().fold(false, |any, (key, field)| {
            let names = matches!(key.as_str(), "principals" | "notPrincipals");
            let Some(list) = field.as_array_mut().filter(|_| names) else {
                return extend_principals(field, old, new) || any;
            };
            let more: Vec<Value> = list
                .iter()
                .filter_map(Value::as_str)
                .filter(|principal| principal.ends_with(old))
                .map(|principal| principal.replace(old, new).into())
                .collect();
            let more: Vec<Value> = more.into_iter().filter(|p| !list.contains(p)).collect();
            let found = !more.is_empty();
            list.extend(more);
            found || any
        }),
        Value::Array(items) => {
            let mut any = false;
            for item in items {
                any |= extend_principals(item, old, new);
            }
            any
        }
        _ => false,
    }
}

/// The `StatefulSet` of a charm's own pods, by which an application is known to be there.
fn pods(namespace: &str, application: &str) -> ObjectRef {
    ObjectRef::namespaced("apps/v1", "StatefulSet", namespace, application)
}

/// A step that waits until an application is gone.
fn gone(name: &str, title: &str, namespace: &str, application: &str) -> Step {
    let mut step = Step::new(
        name,
        Phase::HandOver,
        title,
        "An application's pods go when it is removed.",
    );
    step.after.push(Check::Absent {
        object: pods(namespace, application),
    });
    step
}

fn remove(namespace: &str, split: &Split) -> Step {
    let mut step = gone(
        "remove-pilot",
        "remove the old charm",
        namespace,
        &split.pilot,
    );
    "Its remove hook writes its routes once more and then purges: the guard keeps the definitions, and \
     a purge finds nothing else as long as its label is not written again."
        .clone_into(&mut step.why);
    step.forward_only = true;
    step.commands = vec![format!(
        "juju remove-application {} --no-prompt",
        split.pilot
    )];
    step
}

/// What the old charm's last hook wrote once more. Its Gateway stays where others' routes name it.
fn sweep(snapshot: &Snapshot, pilot: &Pilot<'_>) -> Step {
    let mut step = Step::new(
        "sweep",
        Phase::Finish,
        "delete what the old charm's last hook wrote once more",
        "It would serve beside the integrator's routes for ever.",
    );
    step.forward_only = true;
    let own: Vec<ObjectRef> = pilot.routes.iter().map(|route| route.id()).collect();
    let used = |gateway: &Object| {
        let name = format!(
            "{}/{}",
            gateway.namespace().unwrap_or_default(),
            gateway.name()
        );
        let routes = snapshot.objects.list(NETWORKING, "VirtualService");
        routes
            .filter(|route| !own.contains(&route.id()))
            .any(|route| {
                route.value()["spec"]["gateways"]
                    .to_string()
                    .contains(&name)
            })
    };
    let gateways = pilot.gateways.iter().filter(|gateway| !used(gateway));
    for object in pilot.routes.iter().chain(gateways).chain(&pilot.guards) {
        step.effect.push(Action::Delete {
            object: object.id(),
        });
        step.after.push(Check::Absent {
            object: object.id(),
        });
    }
    step
}

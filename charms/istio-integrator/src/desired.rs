//! What shall exist. Pure.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::CustomObject;
use istio_api::networking::{EnvoyFilter, Gateway, VirtualService};
use istio_api::security::AuthorizationPolicy;
use juju_charm::{Event, ModelView};
use kube_apply::{Inventory, Object, ObjectRef};
use mesh::auth::{
    Evidence, Gate, Mechanism, Unasked, custom_policy, deny_policy, envoy_filter,
    probe_virtual_service, request_authentication,
};
use mesh::discovery::GatewayPort;
use mesh::routes::{
    Edge, Route, client_protocol_rules, gateway, networking_version, security_version,
};
use serde_json::Value;

use crate::auth;
use crate::gateway_api::{self, ServeApi};
use crate::observe::{self, Live, Names, View};
use crate::policies;
use crate::target::Target;
use crate::tls;
use crate::validate::Validated;

/// Our objects by which it is known that authorization was wanted. Without a look at them nothing is
/// changed: what is live might be taken for a gateway that nobody ever guarded.
const TELLING: [&str; 5] = [
    "virtualservices.networking.istio.io",
    "envoyfilters.networking.istio.io",
    "authorizationpolicies.security.istio.io",
    "httproutes.gateway.networking.k8s.io",
    "grpcroutes.gateway.networking.k8s.io",
];

/// What shall exist.
#[derive(Clone, Debug)]
pub enum Objects {
    /// Nothing: the application goes.
    Nothing(Inventory),
    /// Routes through a gateway.
    Serve(Box<Serve>),
    /// No gateway is clear, but authorization is wanted: routes without it go, all else stays.
    Close(Inventory, Box<Live>),
}

/// Routes through a gateway, and what guards it.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts about a gateway that do not exclude each other"
)]
pub struct Serve {
    /// Whose the objects are.
    pub inventory: Inventory,
    /// Where routes are attached.
    pub edge: Edge,
    /// The `Gateway`.
    pub gateway: Gateway,
    /// The routes.
    pub routes: Vec<Route>,
    /// Whether authorization is wanted.
    pub auth_wanted: bool,
    /// The namespace of the gateway's workload: its pods give the proof.
    pub home: String,
    /// The filters in front of the routes, one for each namespace with pods of the gateway; `None` if
    /// it is not clear who decides.
    pub filters: Option<Vec<EnvoyFilter>>,
    /// The extension provider that is asked instead.
    pub asked: Option<Asked>,
    /// Whether tokens alone decide: then routes need no proof of anything before them.
    pub self_proving: bool,
    /// The policies that deny everything, one for each such namespace.
    pub policies: Vec<AuthorizationPolicy>,
    /// The route that answers probes.
    pub probe: VirtualService,
    /// The port of the gateway that is probed.
    pub port: Option<GatewayPort>,
    /// Version of `networking.istio.io` to write.
    pub networking: &'static str,
    /// Version of `security.istio.io` to write.
    pub security: &'static str,
    /// Secrets, and what else guards nothing and routes nothing by itself.
    pub others: Vec<Value>,
    /// Those of them that are made of what a relation says, with one that says so.
    pub asked_by: BTreeMap<ObjectRef, u32>,
    /// Our objects as they are.
    pub live: Live,
    /// What the gateway's pods answered.
    pub evidence: Evidence,
    /// Whether a filter of somebody else asks an authorizer there.
    pub others_guard: bool,
    /// Labels of the gateway's pods.
    pub labels: BTreeMap<String, String>,
    /// Whether one of them is ready.
    pub ready: bool,
    /// What takes the place of `Gateway`, filters, policies and probe, if the gateway is one of the
    /// Gateway API.
    pub api: Option<ServeApi>,
}

/// An extension provider that is asked, and by which objects.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its name in the mesh config.
    pub provider: String,
    /// Name of the policies.
    pub name: String,
    /// Their namespaces.
    pub namespaces: BTreeSet<String>,
    /// Labels of the gateway's pods.
    pub labels: BTreeMap<String, String>,
}

impl Asked {
    /// The policies that ask about everything but `unasked`.
    pub fn policies(&self, unasked: &Unasked) -> Vec<AuthorizationPolicy> {
        let policy =
            |ns: &String| custom_policy(&self.name, ns, &self.labels, &self.provider, unasked);
        self.namespaces.iter().map(policy).collect()
    }
}

impl Serve {
    /// Whether it costs nothing else if the API server refuses one of [`Self::others`]: it is another's
    /// word, or goes to another's namespace.
    pub fn is_optional(&self, object: &Object) -> bool {
        let home = |ns: &str| ns == self.home || ns == self.edge.namespace;
        self.asked_by.contains_key(&object.id()) || !object.namespace().is_some_and(home)
    }

    /// An object of `networking.istio.io` as the cluster takes it.
    pub fn networking<T: CustomObject>(&self, object: &T) -> Value {
        object.to_object_as(self.networking)
    }
}

/// What shall exist; `None` leaves everything as it is.
pub fn desired(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Objects> {
    if *view.event() == Event::Remove && view.planned_units == 0 {
        return Some(Objects::Nothing(observe::inventory(view)));
    }
    if !view.leader || cluster.is_blind_to(&TELLING) {
        return None;
    }
    // The certificate that is shown may stand there.
    if validated.tls.wanted && cluster.is_blind_to(&["secrets"]) {
        return None;
    }
    match &validated.target {
        Some(target) => {
            serve(view, validated, target, cluster).map(|serve| Objects::Serve(Box::new(serve)))
        }
        None if validated.auth.wanted && cluster.live.is_open() => Some(Objects::Close(
            observe::inventory(view),
            Box::new(cluster.live.clone()),
        )),
        None => None,
    }
}

fn serve(
    view: &ModelView,
    validated: &Validated,
    target: &Target,
    cluster: &View,
) -> Option<Serve> {
    let model = view.context.model_name.as_str();
    let app = view.context.app.as_str();
    let names = Names::new(model, view.context.model_uuid.as_str(), app);
    let pair = validated.tls.pair.as_ref();
    let edge = validated.edge.clone()?;
    let labels = &target.gateway.labels;
    let guard = validated.auth.guard.as_deref().unwrap_or_default();
    let gate = validated.auth.gate.as_ref();
    let filters = gate.map(|gate| {
        let filter =
            |namespace: &String| envoy_filter(&names.guard, namespace, labels, gate, guard);
        target.namespaces.iter().map(filter).collect()
    });
    let provider = gate.and_then(|gate| {
        Some(Asked {
            provider: gate.provider.clone()?,
            name: names.custom(),
            namespaces: target.namespaces.iter().cloned().collect(),
            labels: labels.clone(),
        })
    });
    let security = security_version(&cluster.security);
    let networking = networking_version(&cluster.networking);
    let mut others = Vec::new();
    if let Some(request) = &validated.tls.request {
        others.push(tls::request_secret(model, &names.request(), request));
    }
    if let Some(pair) = pair {
        let namespace = &target.gateway.namespace;
        others.push(tls::credential(namespace, &names.credential(), pair));
    }
    let mut asked = Vec::new();
    if let Some(gate) = gate.filter(|gate| !gate.tokens.is_empty()) {
        let home = &target.gateway.namespace;
        let tokens = request_authentication(&names.tokens(), home, labels, &gate.tokens);
        let holder = view.relations_of(auth::TOKENS).next();
        let holder = holder.map(|relation| relation.id.0).unwrap_or_default();
        asked.push((holder, tokens.to_object_as(security)));
    }
    others.extend(policies::objects(
        view,
        target,
        cluster,
        &validated.routes,
        security,
    ));
    asked.extend(policies::permitting(
        view,
        target,
        &validated.permissions,
        security,
    ));
    for route in &validated.routes {
        let rules = client_protocol_rules(&edge, std::slice::from_ref(route));
        let rules = rules.iter().map(|rule| rule.to_object_as(networking));
        asked.extend(rules.map(|rule| (route.relation, rule)));
    }
    let mut asked_by = BTreeMap::new();
    for (relation, value) in asked {
        // Something without a name is told when it is to be written.
        let id = Object::new(value.clone()).map(|object| object.id());
        let first = id.is_ok_and(|id| asked_by.insert(id, relation).is_none());
        if first {
            others.push(value);
        }
    }
    Some(Serve {
        inventory: observe::inventory(view),
        gateway: gateway(&edge, labels, &validated.routes),
        routes: validated.routes.clone(),
        auth_wanted: validated.auth.wanted,
        home: target.gateway.namespace.clone(),
        filters,
        asked: provider,
        self_proving: gate.and_then(Gate::mechanism) == Some(Mechanism::Tokens),
        policies: target
            .namespaces
            .iter()
            .map(|ns| deny_policy(&names.guard, ns, labels))
            .collect(),
        probe: probe_virtual_service(
            &edge,
            &validated.routes,
            &format!("{}-auth-probe", names.app),
        ),
        port: observe::http_port(&target.gateway).cloned(),
        networking,
        security,
        others,
        asked_by,
        live: cluster.live.clone(),
        evidence: cluster.evidence.clone(),
        others_guard: cluster.others_guard,
        labels: labels.clone(),
        ready: target.ready,
        api: target.api.as_ref().map(|choice| {
            let (auth, said) = (&validated.auth, &cluster.acceptances);
            gateway_api::serve(choice, &edge, auth, &names, said, target.ready)
        }),
        edge,
    })
}

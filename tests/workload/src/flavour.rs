//! What the flavours differ in: what the server does, and what they say to whom.

use std::collections::BTreeMap;

use juju_charm::{Databag, LocalData, ModelView, RelationId};
use relations::{IngressAuth, KubeflowIngress, Scheme, TraefikIngress, TraefikReply, UnitAddress};

use crate::objects::{HTTP_PORT, service_host, service_name};

/// One sample charm.
pub trait Flavour {
    /// Its `charmcraft.yaml`.
    const METADATA: &'static str;
    /// Its name.
    const CHARM: &'static str;
    /// Arguments of the server.
    const ARGS: &'static [&'static str];

    /// What it says to its relations.
    fn databags(view: &ModelView) -> BTreeMap<RelationId, LocalData>;

    /// What its status says once the server runs.
    fn message(view: &ModelView) -> String {
        let _ = view;
        String::new()
    }
}

/// Asks for ingress in traefik's dialect.
#[derive(Debug)]
pub struct Echo;

impl Flavour for Echo {
    const ARGS: &'static [&'static str] = &[];
    const CHARM: &'static str = "echo-k8s";
    const METADATA: &'static str = include_str!("../echo-k8s/charmcraft.yaml");

    fn databags(view: &ModelView) -> BTreeMap<RelationId, LocalData> {
        let unit = UnitAddress {
            host: service_host(view),
            ip: None,
        };
        let ingress = TraefikIngress {
            model: view.context.model_name.to_string(),
            name: view.context.app.to_string(),
            port: HTTP_PORT,
            strip_prefix: view.config.bool("strip-prefix").unwrap_or(true),
            redirect_https: false,
            scheme: Scheme::Http,
            units: Vec::new(),
        };
        let mut app = ingress.encode();
        // A key that is left out would keep the value it had.
        app.entry("strip-prefix".to_owned())
            .or_insert_with(|| "false".to_owned());
        let mut databags = say(
            view,
            "ingress",
            &LocalData {
                app,
                unit: unit.encode(),
            },
        );
        databags.extend(say(view, "istio-ingress-route", &routes(view)));
        databags
    }

    fn message(view: &ModelView) -> String {
        let replies = view.relations_of("ingress");
        let mut urls =
            replies.filter_map(|r| TraefikReply::decode(&r.remote_app_data).ok().flatten());
        urls.next().map(|reply| reply.url).unwrap_or_default()
    }
}

/// Asks for ingress in Kubeflow's dialect.
#[derive(Debug)]
pub struct Dashboard;

impl Flavour for Dashboard {
    const ARGS: &'static [&'static str] = &[];
    const CHARM: &'static str = "dashboard-k8s";
    const METADATA: &'static str = include_str!("../dashboard-k8s/charmcraft.yaml");

    fn databags(view: &ModelView) -> BTreeMap<RelationId, LocalData> {
        let ingress = KubeflowIngress {
            service: service_name(view),
            port: HTTP_PORT,
            namespace: Some(view.context.model_name.to_string()),
            prefix: view
                .config
                .str("prefix")
                .unwrap_or("/dashboard/")
                .to_owned(),
            rewrite: view.config.str("rewrite").map(str::to_owned),
        };
        say(
            view,
            "ingress",
            &LocalData {
                app: ingress.encode(),
                unit: Databag::new(),
            },
        )
    }

    fn message(view: &ModelView) -> String {
        format!("prefix {}", view.config.str("prefix").unwrap_or_default())
    }
}

/// Offers to decide on every request.
#[derive(Debug)]
pub struct Gatekeeper;

impl Flavour for Gatekeeper {
    const ARGS: &'static [&'static str] = &["auth"];
    const CHARM: &'static str = "gatekeeper-k8s";
    const METADATA: &'static str = include_str!("../gatekeeper-k8s/charmcraft.yaml");

    fn databags(view: &ModelView) -> BTreeMap<RelationId, LocalData> {
        let auth = IngressAuth {
            service: service_name(view),
            port: HTTP_PORT,
            allowed_request_headers: vec!["cookie".to_owned()],
            allowed_response_headers: vec!["kubeflow-userid".to_owned()],
        };
        say(
            view,
            "ingress-auth",
            &LocalData {
                app: auth.encode(),
                unit: Databag::new(),
            },
        )
    }
}

/// The routes of the option, as they are.
fn routes(view: &ModelView) -> LocalData {
    let wished = view.config.str("routes").unwrap_or_default();
    LocalData {
        app: Databag::from([("config".to_owned(), wished.to_owned())]),
        unit: Databag::new(),
    }
}

/// The same to every relation of the endpoint.
fn say(view: &ModelView, endpoint: &str, data: &LocalData) -> BTreeMap<RelationId, LocalData> {
    view.relations_of(endpoint)
        .map(|relation| (relation.id, data.clone()))
        .collect()
}

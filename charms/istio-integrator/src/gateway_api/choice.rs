//! Which gateway is meant, and in what API routes are written for it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use istio_api::gateway_api::{AllowedRoutes, Gateway, GatewaySpec, Listener};
use mesh::discovery::{self, ApiGateway, ControlPlane, GatewayWorkload, Selected};
use mesh::routes::gateway_api::{HTTP, HTTPS};

use crate::config::Settings;

/// The option `route-api`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RouteApi {
    /// The one that fits the gateway.
    #[default]
    Auto,
    /// `VirtualService`s on a gateway of Istio's own API.
    Istio,
    /// `HTTPRoute`s and `GRPCRoute`s on a gateway of the Gateway API.
    GatewayApi,
}

impl FromStr for RouteApi {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" | "" => Ok(Self::Auto),
            "istio" => Ok(Self::Istio),
            "gateway-api" => Ok(Self::GatewayApi),
            other => Err(format!("must be auto, istio or gateway-api, is {other:?}")),
        }
    }
}

/// The versions of Gateway API's kinds that the cluster serves, as they are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Served {
    /// Of `Gateway`.
    pub gateway: Option<&'static str>,
    /// Of `HTTPRoute`.
    pub http: Option<&'static str>,
    /// Of `GRPCRoute`.
    pub grpc: Option<&'static str>,
    /// Of `ReferenceGrant`.
    pub grant: Option<&'static str>,
}

/// What the cluster has of the Gateway API.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The classes of gateways that istiod runs, the default one first.
    pub classes: Vec<String>,
    /// Gateways of those classes, ours among them.
    pub gateways: Vec<ApiGateway>,
    /// Namespace and name of those that are ours.
    pub ours: BTreeSet<(String, String)>,
    /// What is served.
    pub served: Served,
}

/// A gateway of the Gateway API that is meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApiChoice {
    /// The gateway.
    pub gateway: ApiGateway,
    /// Whether it is ours; else its owner decides about listeners and certificates.
    pub own: bool,
    /// The revision that is to run it, if it is ours; `None` for the default one.
    pub revision: Option<String>,
    /// What is served.
    pub served: Served,
}

/// The gateway of the Gateway API that is meant; `None` if one of Istio's own API is, or would be.
/// `classic` is what was found of the latter.
pub fn choose(
    settings: &Settings,
    namespace: &str,
    plane: &Selected<ControlPlane>,
    classic: Option<&Selected<GatewayWorkload>>,
    facts: &Facts,
    live: &discovery::Live,
) -> Option<Selected<ApiChoice>> {
    let Selected::One(plane) = plane else {
        return None;
    };
    let wanted = settings.gateway.as_str();
    let none_of_istio = matches!(classic, None | Some(Selected::None { .. }));
    match settings.route_api {
        RouteApi::Istio => return None,
        RouteApi::Auto if !none_of_istio => return None,
        RouteApi::Auto | RouteApi::GatewayApi => {}
    }
    let chosen = if wanted.is_empty() {
        own(settings, namespace, plane, facts, live)
    } else {
        named(wanted, facts)
    };
    // Where nothing is found, what was looked for is told of the API that is asked for.
    match chosen {
        Selected::None { .. } if settings.route_api == RouteApi::Auto => None,
        chosen => Some(chosen),
    }
}

fn named(wanted: &str, facts: &Facts) -> Selected<ApiChoice> {
    let (namespace, name) = wanted.rsplit_once('/').unwrap_or(("", wanted));
    let named = |gateway: &&ApiGateway| {
        (namespace.is_empty() || gateway.workload.namespace == namespace)
            && (gateway.name == name || gateway.workload.name == name)
    };
    let fitting: Vec<&ApiGateway> = facts.gateways.iter().filter(named).collect();
    match fitting.as_slice() {
        [] => Selected::None {
            looked_for: format!("gateway {wanted} of the Gateway API, of a class of Istio's"),
        },
        [one] => {
            let key = (one.workload.namespace.clone(), one.name.clone());
            Selected::One(ApiChoice {
                own: facts.ours.contains(&key),
                revision: one.workload.revision.clone(),
                gateway: (*one).clone(),
                served: facts.served,
            })
        }
        several => Selected::Several {
            candidates: several
                .iter()
                .map(|gateway| format!("{}/{}", gateway.workload.namespace, gateway.name))
                .collect(),
        },
    }
}

/// A gateway of our own in the model's namespace.
fn own(
    settings: &Settings,
    namespace: &str,
    plane: &ControlPlane,
    facts: &Facts,
    live: &discovery::Live,
) -> Selected<ApiChoice> {
    let none = || Selected::None {
        looked_for: "a GatewayClass of Istio (controller istio.io/gateway-controller)".to_owned(),
    };
    let Some(class) = facts.classes.first() else {
        return none();
    };
    let revision = Some(plane.revision.label().to_owned()).filter(|label| label != "default");
    let listener = |name: &str, port: u16, protocol: &str| Listener {
        name: name.to_owned(),
        port,
        protocol: protocol.to_owned(),
        allowed_routes: Some(AllowedRoutes::same()),
        ..Listener::default()
    };
    let spec = GatewaySpec {
        gateway_class_name: class.clone(),
        listeners: vec![listener(HTTP, 80, "HTTP"), listener(HTTPS, 443, "HTTPS")],
    };
    let mut gateway = Gateway::new(namespace, &settings.gateway_name, spec);
    gateway.metadata.labels = revision
        .clone()
        .map(|revision| BTreeMap::from([("istio.io/rev".to_owned(), revision)]));
    match discovery::api_gateway(&gateway, namespace, live) {
        Some(gateway) => Selected::One(ApiChoice {
            gateway,
            own: true,
            revision,
            served: facts.served,
        }),
        None => none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_has_three_values() {
        let check = |text: &str, expect: Result<RouteApi, &str>| {
            assert_eq!(text.parse(), expect.map_err(str::to_owned));
        };
        check("auto", Ok(RouteApi::Auto));
        check("", Ok(RouteApi::Auto));
        check("istio", Ok(RouteApi::Istio));
        check("gateway-api", Ok(RouteApi::GatewayApi));
        check(
            "gateway",
            Err("must be auto, istio or gateway-api, is \"gateway\""),
        );
    }
}

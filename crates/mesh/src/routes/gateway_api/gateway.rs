//! A `Gateway` of our own.

use std::collections::BTreeMap;

use istio_api::gateway_api::{
    AllowedRoutes, CertificateRef, Gateway, GatewaySpec, Listener, ListenerTls,
};

use super::super::Edge;
use super::{HTTP, HTTPS, Parent};

/// What a `Gateway` of our own is made of.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OwnGateway {
    /// Its class, which is Istio's.
    pub class: String,
    /// The revision whose control plane is to run it; `None` for the default one.
    pub revision: Option<String>,
}

/// The `Gateway`: plain HTTP, and TLS where there is a certificate, for every host and for routes of
/// its own namespace only.
pub fn gateway(edge: &Edge, parent: &Parent, own: &OwnGateway) -> Gateway {
    let listener = |name: &str, port: u16, protocol: &str| Listener {
        name: name.to_owned(),
        hostname: None,
        port,
        protocol: protocol.to_owned(),
        tls: None,
        allowed_routes: Some(AllowedRoutes::same()),
    };
    let mut listeners = vec![listener(HTTP, edge.http, "HTTP")];
    if let Some(tls) = &edge.tls {
        listeners.push(Listener {
            tls: Some(ListenerTls {
                mode: Some("Terminate".to_owned()),
                certificate_refs: vec![CertificateRef::secret(&tls.credential)],
            }),
            ..listener(HTTPS, tls.port, "HTTPS")
        });
    }
    let spec = GatewaySpec {
        gateway_class_name: own.class.clone(),
        listeners,
    };
    let mut gateway = Gateway::new(&parent.namespace, &parent.name, spec);
    if let Some(revision) = &own.revision {
        let label = ("istio.io/rev".to_owned(), revision.clone());
        gateway.metadata.labels = Some(BTreeMap::from([label]));
    }
    gateway
}

/// The version to write, out of those the cluster serves of a kind.
pub fn version(served: &[String]) -> Option<&'static str> {
    ["v1", "v1beta1"]
        .into_iter()
        .find(|version| served.iter().any(|served| served == version))
}

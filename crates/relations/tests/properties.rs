//! `decode(encode(x)) == x` on every interface, and no databag whatever makes a decoder panic.

use juju_hooks::Databag;
use proptest::prelude::*;
use relations::{
    CertificateRequests, Certificates, CrossModelApp, ExtAuthzProvider, ForwardAuth, GatewayInfo,
    GatewayMetadata, Ingress, IngressAuth, IngressConfig, IngressedApps, IstioMetadata,
    KubeflowIngress, MeshLabels, MeshPolicies, RequestAuth, RouteConfig, RouteReply, Scheme,
    ScrapeJobs, TraefikIngress, TraefikReply, UnitAddress,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,8}",
        Just("yes".to_owned()),
        Just("0123".to_owned())
    ]
}

fn some_text() -> impl Strategy<Value = String> {
    text().prop_filter("not empty", |text| !text.is_empty())
}

fn kubeflow() -> impl Strategy<Value = KubeflowIngress> {
    (
        text(),
        1u16..,
        proptest::option::of(text()),
        text(),
        proptest::option::of(text()),
    )
        .prop_map(
            |(service, port, namespace, prefix, rewrite)| KubeflowIngress {
                service,
                port,
                namespace,
                prefix,
                rewrite,
            },
        )
}

fn unit() -> impl Strategy<Value = UnitAddress> {
    (text(), proptest::option::of(text())).prop_map(|(host, ip)| UnitAddress { host, ip })
}

fn traefik() -> impl Strategy<Value = TraefikIngress> {
    let scheme = prop_oneof![Just(Scheme::Http), Just(Scheme::Https), Just(Scheme::H2c)];
    let units = proptest::collection::vec(unit(), 0..3);
    (text(), text(), 1u16.., any::<(bool, bool)>(), scheme, units).prop_map(
        |(model, name, port, (strip_prefix, redirect_https), scheme, units)| TraefikIngress {
            model,
            name,
            port,
            strip_prefix,
            redirect_https,
            scheme,
            units,
        },
    )
}

fn auth() -> impl Strategy<Value = IngressAuth> {
    let list = || proptest::collection::vec(text(), 0..3);
    (text(), 1u16.., list(), list()).prop_map(
        |(service, port, allowed_request_headers, allowed_response_headers)| IngressAuth {
            service,
            port,
            allowed_request_headers,
            allowed_response_headers,
        },
    )
}

fn any_databag() -> impl Strategy<Value = Databag> {
    let key = prop_oneof![
        Just("_supported_versions".to_owned()),
        Just("data".to_owned()),
        Just("model".to_owned()),
        Just("name".to_owned()),
        Just("port".to_owned()),
        Just("ingress".to_owned()),
        Just("host".to_owned()),
        "config|external_host|tls_enabled|decisions_address|app_names|headers|jwt_rules",
        "certificates|request_errors|certificate_signing_requests|policies|labels|cmr_data",
        "ext_authz_(service_name|port|protocol|provider_name)|scrape_(jobs|metadata)|metadata",
        text(),
    ];
    let value = prop_oneof![
        "\\PC{0,40}",
        "[-v12:{}\\[\\]\"'&*!|> \n]{0,30}",
        Just("- v1\n".to_owned()),
        Just("- v2\n".to_owned()),
        "(service|port|prefix|namespace): [a-z0-9/'\"]{0,6}\n",
        r#"\[?\{"(model|issuer|csr|labels|name|app_name)": ?("a"|1|null|\[\])\}\]?"#,
    ];
    proptest::collection::btree_map(key, value, 0..6)
}

proptest! {
    #[test]
    fn kubeflow_ingress_survives_the_databag(x in kubeflow()) {
        prop_assert_eq!(Ingress::decode(&x.encode(), []), Ok(Some(Ingress::Kubeflow(x))));
    }

    #[test]
    fn traefik_ingress_survives_the_databags(x in traefik()) {
        let units: Vec<Databag> = x.units.iter().map(UnitAddress::encode).collect();
        prop_assert_eq!(Ingress::decode(&x.encode(), &units), Ok(Some(Ingress::Traefik(x))));
    }

    #[test]
    fn ingress_auth_survives_the_databag(x in auth()) {
        prop_assert_eq!(IngressAuth::decode(&x.encode()), Ok(Some(x)));
    }

    #[test]
    fn plain_interfaces_survive_the_databag(name in some_text(), namespace in some_text(), up: bool) {
        let reply = TraefikReply { url: name.clone() };
        prop_assert_eq!(TraefikReply::decode(&reply.encode()), Ok(Some(reply)));
        let metadata = IstioMetadata { root_namespace: namespace.clone() };
        prop_assert_eq!(IstioMetadata::decode(&metadata.encode()), Ok(Some(metadata)));
        let info = GatewayInfo { gateway_name: name, gateway_namespace: namespace, gateway_up: up };
        prop_assert_eq!(GatewayInfo::decode(&info.encode()), Ok(Some(info)));
    }

    #[test]
    fn no_databag_makes_a_decoder_panic(app in any_databag(), unit in any_databag()) {
        let outcomes = [
            Ingress::decode(&app, [&unit]).err(),
            IngressAuth::decode(&app).err(),
            GatewayInfo::decode(&app).err(),
            IstioMetadata::decode(&app).err(),
            TraefikReply::decode(&app).err(),
            RouteConfig::decode(&app).err(),
            RouteReply::decode(&app).err(),
            ForwardAuth::decode(&app).and_then(|a| a.map(|a| a.address()).transpose()).err(),
            IngressedApps::decode(&app).err(),
            RequestAuth::decode(&app).err(),
            GatewayMetadata::decode(&app).err(),
            CertificateRequests::decode(&app).err(),
            Certificates::decode(&app).err(),
            MeshPolicies::decode(&app).err(),
            MeshLabels::decode(&app).err(),
            CrossModelApp::decode(&app).err(),
            IngressConfig::decode(&app).err(),
            ExtAuthzProvider::decode(&app).err(),
            ScrapeJobs::decode(&app).err(),
        ];
        for problem in outcomes.into_iter().flatten() {
            prop_assert!(!problem.key.is_empty() && !problem.what.is_empty());
        }
    }
}

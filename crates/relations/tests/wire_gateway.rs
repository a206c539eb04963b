//! The databags of the gateway's interfaces, byte for byte as their Python libraries write them.

use juju_hooks::Databag;
use relations::ingress_route::{
    GrpcFilter, GrpcMethod, HttpFilter, Listener, PathKind, PathModifier, Protocol,
    RequestRedirect, RouteBackend,
};
use relations::service_mesh::TargetType;
use relations::{
    CertificateRequest, CertificateRequests, Certificates, CrossModelApp, ExtAuthzProvider,
    ForwardAuth, GatewayMetadata, IngressConfig, IngressedApps, IssuedCertificate, MeshLabels,
    MeshPolicies, RequestAuth, RouteConfig, RouteReply, ScrapeJobs,
};

fn bag(entries: &[(&str, &str)]) -> Databag {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn routes_with_all_fields_are_read_from_what_the_library_writes() {
    let config = r#"{"model":"cos","listeners":[{"port":8080,"protocol":"HTTP"},{"port":4317,"protocol":"GRPC"}],"http_routes":[{"name":"api","listener":{"port":8080,"protocol":"HTTP"},"backends":[{"service":"tempo","port":3200,"weight":null}],"hostnames":null,"matches":[{"headers":null,"path":{"type":"PathPrefix","value":"/api"},"method":"GET"}],"filters":[{"urlRewrite":{"hostname":null,"path":{"type":"ReplacePrefixMatch","replacePrefixMatch":"/"}},"type":"URLRewrite"}]}],"grpc_routes":[{"name":"otlp","listener":{"port":4317,"protocol":"GRPC"},"backends":[{"service":"tempo","port":4317,"weight":null}],"hostnames":null,"matches":[{"headers":null,"method":{"service":"opentelemetry.proto.collector.trace.v1.TraceService","method":"Export"}}],"filters":null}]}"#;
    let read = RouteConfig::decode(&bag(&[("config", config)]))
        .unwrap()
        .unwrap();
    assert_eq!(read.model, "cos");
    let http = &read.http_routes[0];
    let listener = Listener {
        port: 8080,
        protocol: Protocol::Http,
    };
    assert_eq!((http.name.as_str(), http.listener), ("api", listener));
    let backend = RouteBackend {
        service: "tempo".to_owned(),
        port: 3200,
        weight: None,
    };
    assert_eq!(http.backends, [backend]);
    assert_eq!(
        http.matches[0].path.as_ref().unwrap().kind,
        PathKind::PathPrefix
    );
    assert_eq!(http.matches[0].method.as_deref(), Some("GET"));
    let HttpFilter::UrlRewrite { rewrite } = &http.filters[0] else {
        panic!("{:?}", http.filters)
    };
    let root = PathModifier::ReplacePrefixMatch {
        value: "/".to_owned(),
    };
    assert_eq!(rewrite.path, Some(root));
    let call = GrpcMethod {
        service: "opentelemetry.proto.collector.trace.v1.TraceService".to_owned(),
        method: Some("Export".to_owned()),
    };
    assert_eq!(read.grpc_routes[0].matches[0].method, Some(call));
    assert_eq!(RouteConfig::decode(&read.encode()).unwrap(), Some(read));
}

#[test]
fn a_redirect_is_read_with_its_code() {
    let config = r#"{"model":"lab","http_routes":[{"name":"old","listener":{"port":80,"protocol":"HTTP"},"backends":[],"filters":[{"type":"RequestRedirect","requestRedirect":{"scheme":"https","hostname":null,"path":{"type":"ReplaceFullPath","value":"/new"},"port":null,"statusCode":302}}]}]}"#;
    let read = RouteConfig::decode(&bag(&[("config", config)]))
        .unwrap()
        .unwrap();
    let HttpFilter::RequestRedirect { redirect } = &read.http_routes[0].filters[0] else {
        panic!("{read:?}")
    };
    assert_eq!(
        (redirect.scheme.as_deref(), redirect.status_code),
        (Some("https"), Some(302))
    );
    let full = PathModifier::ReplaceFullPath {
        value: "/new".to_owned(),
    };
    assert_eq!(redirect.path, Some(full));
}

fn routes(http: &str, grpc: &str) -> relations::Result<Option<RouteConfig>> {
    let config = format!(r#"{{"model":"lab","http_routes":[{http}],"grpc_routes":[{grpc}]}}"#);
    RouteConfig::decode(&bag(&[("config", &config)]))
}

#[test]
fn headers_are_names_and_values() {
    let route = r#"{"name":"a","listener":{"port":80,"protocol":"HTTP"},"backends":[],
        "matches":[{"headers":{"X-Team":"blue","x-tenant":""}}]}"#;
    let read = routes(route, "").unwrap().unwrap();
    let headers = [("X-Team", "blue"), ("x-tenant", "")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(read.http_routes[0].matches[0].headers, headers.into());
    let listed = route.replace(
        r#"{"X-Team":"blue","x-tenant":""}"#,
        r#"[{"name":"X-Team","value":"blue"}]"#,
    );
    assert!(routes(&listed, "").is_err());
}

#[test]
fn a_redirect_of_calls_is_read() {
    let route = r#"{"name":"a","listener":{"port":80,"protocol":"GRPC"},"backends":[],
        "filters":[{"requestRedirect":{"hostname":"new.example"},"type":"RequestRedirect"}]}"#;
    let read = routes("", route).unwrap().unwrap();
    let redirect = RequestRedirect {
        hostname: Some("new.example".to_owned()),
        ..RequestRedirect::default()
    };
    assert_eq!(
        read.grpc_routes[0].filters,
        [GrpcFilter::RequestRedirect { redirect }]
    );
}

#[test]
fn numbers_and_methods_of_a_route_have_limits() {
    let check = |from: &str, to: &str, accepted: bool| {
        let route = r#"{"name":"a","listener":{"port":80,"protocol":"HTTP"},
            "backends":[{"service":"a","port":1,"weight":1}],"matches":[{"method":"GET"}],
            "filters":[{"type":"RequestRedirect","requestRedirect":{"port":443}}]}"#;
        assert!(route.contains(from), "{from}");
        let read = routes(&route.replace(from, to), "");
        assert_eq!(read.is_ok(), accepted, "{to}: {read:?}");
    };
    check("\"weight\":1", "\"weight\":100", true);
    check("\"weight\":1", "\"weight\":null", true);
    check("\"weight\":1", "\"weight\":0", false);
    check("\"weight\":1", "\"weight\":101", false);
    check("\"port\":80", "\"port\":0", false);
    check("\"port\":80", "\"port\":65535", true);
    check("\"port\":1", "\"port\":0", false);
    check("\"port\":443", "\"port\":0", false);
    check("\"port\":443", "\"port\":null", true);
    check("\"GET\"", "\"CONNECT\"", true);
    check("\"GET\"", "null", true);
    check("\"GET\"", "\"get\"", false);
    check(
        "\"backends\":[{\"service\":\"a\",\"port\":1,\"weight\":1}],",
        "",
        false,
    );
}

#[test]
fn what_is_no_route_is_told_with_its_key() {
    let check = |config: &str, expect: &str| {
        let problem = RouteConfig::decode(&bag(&[("config", config)])).unwrap_err();
        assert_eq!(problem.to_string(), expect);
    };
    check("{", "databag key config: must be JSON");
    check("{}", "databag key config: missing field `model`");
    check(
        r#"{"model":"lab","http_routes":[{"name":"a","listener":{"port":70000,"protocol":"HTTP"}}]}"#,
        "databag key config: invalid value: integer `70000`, expected u16",
    );
    assert_eq!(RouteConfig::decode(&bag(&[("config", "")])), Ok(None));
}

#[test]
fn the_answer_to_routes_is_spelt_as_python_does() {
    let reply = RouteReply {
        external_host: "10.64.140.43".to_owned(),
        tls_enabled: true,
    };
    let written = bag(&[("external_host", "10.64.140.43"), ("tls_enabled", "True")]);
    assert_eq!(reply.encode(), written);
    assert_eq!(RouteReply::decode(&written), Ok(Some(reply)));
    assert_eq!(RouteReply::decode(&RouteReply::withdrawn()), Ok(None));
    assert!(RouteReply::decode(&bag(&[("external_host", "x"), ("tls_enabled", "ja")])).is_err());
}

#[test]
fn forward_auth_has_plain_texts_and_json_lists() {
    let written = bag(&[
        (
            "decisions_address",
            "http://oauth2-proxy-k8s.iam.svc.cluster.local:4180/",
        ),
        ("app_names", "[\"jupyter-ui\"]"),
        (
            "headers",
            "[\"X-Auth-Request-User\", \"X-Auth-Request-Email\"]",
        ),
    ]);
    let read = ForwardAuth::decode(&written).unwrap().unwrap();
    let host = "oauth2-proxy-k8s.iam.svc.cluster.local".to_owned();
    assert_eq!(read.address(), Ok(("http".to_owned(), host, 4180)));
    assert_eq!(read.headers.len(), 2);
    assert_eq!(ForwardAuth::decode(&read.encode()), Ok(Some(read)));
    assert_eq!(ForwardAuth::decode(&Databag::new()), Ok(None));
    let alone = bag(&[("decisions_address", "http://gate:80/")]);
    let problem = ForwardAuth::decode(&alone).unwrap_err();
    assert_eq!(problem.to_string(), "databag key app_names: is missing");
    let apps = IngressedApps(vec![
        "jupyter-ui".to_owned(),
        "kubeflow-dashboard".to_owned(),
    ]);
    assert_eq!(
        apps.encode(),
        bag(&[(
            "ingress_app_names",
            "[\"jupyter-ui\",\"kubeflow-dashboard\"]"
        )])
    );
    assert_eq!(IngressedApps::decode(&apps.encode()), Ok(Some(apps)));
}

#[test]
fn an_address_that_is_none_is_refused() {
    for address in [
        "gate:80",
        "ftp://gate",
        "http://",
        "http://gate:0",
        "http://a@b:80",
        "http://gate:x",
    ] {
        let auth = ForwardAuth {
            decisions_address: address.to_owned(),
            app_names: Vec::new(),
            headers: Vec::new(),
        };
        assert!(auth.address().is_err(), "{address}");
    }
}

#[test]
fn token_rules_need_an_issuer_only() {
    let rules = r#"[{"issuer": "https://kubernetes.default.svc.cluster.local", "jwks_uri": "https://x/openid/v1/jwks", "audiences": ["istio"], "forward_original_token": true, "claim_to_headers": [{"header": "kubeflow-userid", "claim": "sub"}], "from_headers": [{"name": "Authorization", "prefix": "Bearer "}]}, {"issuer": "a", "audiences": null}]"#;
    let read = RequestAuth::decode(&bag(&[("jwt_rules", rules)]))
        .unwrap()
        .unwrap();
    assert_eq!(read.rules[0].claim_to_headers[0].claim, "sub");
    assert_eq!(
        read.rules[0].from_headers[0].prefix.as_deref(),
        Some("Bearer ")
    );
    assert_eq!(read.rules[1].issuer, "a");
    assert_eq!(RequestAuth::decode(&read.encode()), Ok(Some(read)));
    assert_eq!(RequestAuth::decode(&Databag::new()), Ok(None));
    assert!(RequestAuth::decode(&bag(&[("jwt_rules", "[{}]")])).is_err());
}

#[test]
fn the_gateways_identity_is_one_document() {
    let written = bag(&[(
        "metadata",
        r#"{"namespace":"istio-system","gateway_name":"istio-ingress-k8s","deployment_name":"istio-ingress-k8s-istio","service_account":"istio-ingress-k8s-istio"}"#,
    )]);
    let read = GatewayMetadata::decode(&written).unwrap().unwrap();
    assert_eq!(read.service_account, "istio-ingress-k8s-istio");
    assert_eq!(GatewayMetadata::decode(&read.encode()), Ok(Some(read)));
}

#[test]
fn a_certificate_is_found_by_its_request() {
    let csr = "-----BEGIN CERTIFICATE REQUEST-----\nMIIC\n-----END CERTIFICATE REQUEST-----";
    let requests = CertificateRequests(vec![CertificateRequest {
        csr: csr.to_owned(),
        ca: false,
    }]);
    assert_eq!(
        CertificateRequests::decode(&requests.encode()),
        Ok(Some(requests))
    );
    let written = bag(&[
        (
            "certificates",
            r#"[{"ca": "CA", "certificate_signing_request": "-----BEGIN CERTIFICATE REQUEST-----\nMIIC\n-----END CERTIFICATE REQUEST-----\n", "certificate": "LEAF", "chain": ["LEAF", "CA"]}]"#,
        ),
        (
            "request_errors",
            r#"[{"csr": "other", "error": {"code": 101, "name": "IP_NOT_ALLOWED", "message": "no addresses"}}]"#,
        ),
    ]);
    let read = Certificates::decode(&written).unwrap();
    assert_eq!(read.answer(csr).unwrap().bundle(), "LEAF\nCA\n");
    assert_eq!(read.answer("other"), None);
    assert_eq!(read.refusal("other").unwrap().code, 101);
    assert_eq!(Certificates::decode(&read.encode()), Ok(read));
}

#[test]
fn a_request_may_leave_open_whether_it_is_for_an_authority() {
    let requests = r#"[{"certificate_signing_request":"a","ca":null}]"#;
    let read = CertificateRequests::decode(&bag(&[("certificate_signing_requests", requests)]));
    assert!(!read.unwrap().unwrap().0[0].ca);
}

#[test]
fn a_revoked_certificate_answers_nothing() {
    let issued = IssuedCertificate {
        csr: "x".to_owned(),
        certificate: "LEAF".to_owned(),
        ca: "CA".to_owned(),
        chain: Vec::new(),
        revoked: true,
    };
    let read = Certificates {
        issued: vec![issued],
        refused: Vec::new(),
    };
    assert_eq!(read.answer("x"), None);
}

#[test]
fn mesh_policies_may_be_absent() {
    let written = bag(&[(
        "policies",
        r#"[{"source_namespace": "kubeflow", "source_app_name": "prometheus", "target_namespace": "kubeflow", "target_app_name": "minio", "target_selector_labels": null, "target_service": null, "target_type": "unit", "endpoints": [{"hosts": null, "ports": [9090], "methods": ["GET"], "paths": ["/metrics"]}]}]"#,
    )]);
    let read = MeshPolicies::decode(&written).unwrap();
    assert_eq!(read.0[0].target_type, TargetType::Unit);
    assert_eq!(read.0[0].endpoints[0].ports, [9090]);
    assert_eq!(MeshPolicies::decode(&read.encode()), Ok(read));
    assert_eq!(
        MeshPolicies::decode(&Databag::new()),
        Ok(MeshPolicies::default())
    );
    let labels = MeshLabels::default();
    assert_eq!(
        labels.encode(),
        bag(&[("labels", "{}"), ("mesh_type", "\"istio\"")])
    );
    assert_eq!(MeshLabels::decode(&labels.encode()), Ok(Some(labels)));
}

#[test]
fn a_mesh_policy_that_contradicts_itself_is_refused() {
    let check = |more: &str, accepted: bool| {
        let policies = format!(
            r#"[{{"source_namespace":"a","source_app_name":"b","target_namespace":"c",{more}}}]"#
        );
        let read = MeshPolicies::decode(&bag(&[("policies", &policies)]));
        assert_eq!(read.is_ok(), accepted, "{more}: {read:?}");
    };
    check(r#""target_app_name":"d""#, true);
    check(r#""target_service":"d""#, true);
    check(r#""target_app_name":"","target_service":null"#, false);
    check(
        r#""target_app_name":"d","target_selector_labels":{"x":"y"}"#,
        false,
    );
    check(r#""target_app_name":"d","target_selector_labels":{}"#, true);
    check(r#""target_type":"unit","target_app_name":"d""#, true);
    check(
        r#""target_type":"unit","target_selector_labels":{"x":"y"}"#,
        true,
    );
    check(
        r#""target_type":"unit","target_app_name":"d","target_selector_labels":{"x":"y"}"#,
        false,
    );
    check(r#""target_type":"unit","target_service":"d""#, false);
    check(r#""target_type":"pod","target_app_name":"d""#, false);
    check(
        r#""target_app_name":"d","endpoints":[{"methods":["GET"]}]"#,
        true,
    );
    check(
        r#""target_app_name":"d","endpoints":[{"methods":["get"]}]"#,
        false,
    );
    check(
        r#""target_app_name":"d","endpoints":[{"ports":[70000]}]"#,
        false,
    );
    check(r#""target_app_name":"d","endpoints":null"#, false);
}

#[test]
fn an_application_of_another_model_says_its_name() {
    let written = bag(&[(
        "cmr_data",
        r#"{"app_name": "prometheus", "juju_model_name": "cos"}"#,
    )]);
    let read = CrossModelApp::decode(&written).unwrap().unwrap();
    assert_eq!(
        (read.app_name.as_str(), read.juju_model_name.as_str()),
        ("prometheus", "cos")
    );
    assert_eq!(CrossModelApp::decode(&read.encode()), Ok(Some(read)));
}

#[test]
fn the_stand_in_for_no_authorizer_is_none() {
    let written = bag(&[
        (
            "ext_authz_service_name",
            "oauth2-proxy-k8s.iam.svc.cluster.local",
        ),
        ("ext_authz_port", "4180"),
        ("ext_authz_protocol", "http"),
        (
            "include_headers_in_check",
            "[\"authorization\", \"cookie\"]",
        ),
        ("headers_to_upstream_on_allow", "[\"authorization\"]"),
        ("headers_to_downstream_on_allow", "[\"set-cookie\"]"),
        (
            "headers_to_downstream_on_deny",
            "[\"content-type\", \"set-cookie\"]",
        ),
    ]);
    let read = IngressConfig::decode(&written).unwrap().unwrap();
    assert_eq!((read.port, read.grpc), (4180, false));
    let mut cleared = read.encode();
    assert_eq!(IngressConfig::decode(&cleared), Ok(Some(read)));
    cleared.extend(IngressConfig::nobody());
    assert_eq!(IngressConfig::decode(&cleared), Ok(None));
    assert_eq!(
        IngressConfig::nobody(),
        bag(&[
            ("ext_authz_service_name", "fake_host"),
            ("ext_authz_port", "5432"),
            ("ext_authz_protocol", "http"),
        ])
    );
    let provider = ExtAuthzProvider {
        name: "ext_authz-edge".to_owned(),
    };
    assert_eq!(
        ExtAuthzProvider::decode(&provider.encode()),
        Ok(Some(provider))
    );
    assert_eq!(ExtAuthzProvider::decode(&Databag::new()), Ok(None));
}

#[test]
fn scrape_jobs_are_read_back() {
    let written = bag(&[
        (
            "scrape_metadata",
            r#"{"model": "lab", "model_uuid": "f2c1", "application": "meshy", "unit": "meshy/0", "charm_name": "meshy"}"#,
        ),
        (
            "scrape_jobs",
            r#"[{"metrics_path": "/metrics", "static_configs": [{"targets": ["istiod.istio-lab.svc:15014"]}]}]"#,
        ),
        ("alert_rules", r#"{"groups": []}"#),
    ]);
    let read = ScrapeJobs::decode(&written).unwrap().unwrap();
    assert_eq!(
        read.jobs[0].static_configs[0].targets,
        ["istiod.istio-lab.svc:15014"]
    );
    assert_eq!(ScrapeJobs::decode(&read.encode()), Ok(Some(read)));
    assert_eq!(ScrapeJobs::decode(&Databag::new()), Ok(None));
}

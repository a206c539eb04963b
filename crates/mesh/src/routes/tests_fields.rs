//! Hosts, conditions, shares, rewrites and redirects.

use istio_api::CustomObject as _;
use istio_api::networking::StringMatch;
use serde_json::{Value, json};

use super::*;

fn to(service: &str, weight: u32) -> Weighted {
    let backend = Backend {
        service: service.to_owned(),
        namespace: "lab".to_owned(),
        port: 8080,
    };
    Weighted { backend, weight }
}

fn matched(path: PathRequest) -> MatchRequest {
    MatchRequest {
        path,
        method: None,
        headers: Vec::new(),
    }
}

fn request(relation: u32, name: &str, path: PathRequest) -> RouteRequest {
    RouteRequest {
        relation,
        name: name.to_owned(),
        app: format!("app-{relation}"),
        hosts: Vec::new(),
        matches: vec![matched(path)],
        action: ActionRequest::Forward {
            backends: vec![to(&format!("svc-{relation}"), 1)],
            rewrite: None,
            host: None,
        },
        open: false,
        client_protocol: false,
    }
}

fn prefix(text: &str) -> PathRequest {
    PathRequest::Prefix(text.to_owned())
}

fn edge() -> Edge {
    Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: vec!["apps.example.org".to_owned()],
        http: 80,
        ..Edge::default()
    }
}

/// The rules of routes: all but the charm's own.
fn http(edge: &Edge, requests: &[RouteRequest]) -> Vec<Value> {
    let (routes, problems) = routes(requests);
    assert!(problems.is_empty(), "{problems:?}");
    let services = virtual_services(edge, &routes);
    let rules = services.iter().flat_map(|service| {
        service.to_object()["spec"]["http"]
            .as_array()
            .unwrap()
            .clone()
    });
    let own = |rule: &Value| {
        let path = rule["match"][0]["uri"]["exact"].as_str();
        path.is_some_and(|path| path.starts_with(RESERVED_PREFIX))
    };
    rules.filter(|rule| !own(rule)).collect()
}

#[test]
fn headers_methods_and_shares_are_written() {
    let mut canary = request(1, "canary", prefix("/api"));
    canary.matches[0].method = Some("GET".to_owned());
    canary.matches[0].headers = vec![("X-Team".to_owned(), StringMatch::Exact("blue".to_owned()))];
    canary.action = ActionRequest::Forward {
        backends: vec![to("old", 90), to("new", 10)],
        rewrite: Some(PathChange::Whole("/v2/".to_owned())),
        host: Some("inner.example.org".to_owned()),
    };
    let destination = |service: &str, weight: u32| {
        json!({"weight": weight, "destination": {
        "host": format!("{service}.lab.svc.cluster.local"), "port": {"number": 8080}}})
    };
    let condition = |uri: Value| json!({"uri": uri, "method": {"exact": "GET"}, "headers": {"x-team": {"exact": "blue"}}});
    assert_eq!(
        http(&edge(), &[canary]),
        [json!({
            "match": [condition(json!({"exact": "/api"})), condition(json!({"prefix": "/api/"}))],
            "rewrite": {"authority": "inner.example.org", "uriRegexRewrite": {"match": "/.*", "rewrite": "/v2/"}},
            "route": [destination("old", 90), destination("new", 10)],
        })]
    );
}

#[test]
fn a_redirect_leads_to_no_backend() {
    let mut moved = request(1, "", PathRequest::Exact("/old".to_owned()));
    moved.action = ActionRequest::Redirect {
        scheme: Some("https".to_owned()),
        host: None,
        path: Some(PathChange::Whole("/new".to_owned())),
        port: None,
        code: 302,
    };
    assert_eq!(
        http(&edge(), &[moved]),
        [json!({"match": [{"uri": {"exact": "/old"}}],
            "redirect": {"scheme": "https", "uri": "/new", "redirectCode": 302}})]
    );
}

#[test]
fn each_host_has_an_object_and_the_gateways_own_is_one_with_the_default() {
    let mut own = request(1, "", prefix("/"));
    own.hosts = vec![
        "Books.example.org".to_owned(),
        "apps.example.org".to_owned(),
    ];
    let (routes, _) = routes(&[own, request(2, "", prefix("/x"))]);
    let services = virtual_services(&edge(), &routes);
    let hosts: Vec<_> = services
        .iter()
        .map(|s| (s.spec.hosts.clone(), s.spec.http.len()))
        .collect();
    assert_eq!(
        hosts,
        [
            (vec!["apps.example.org".to_owned()], 2),
            (vec!["books.example.org".to_owned()], 1),
        ]
    );
    assert_eq!(
        super::hosts(&edge(), &routes),
        ["apps.example.org", "books.example.org"]
    );
    assert_eq!(established(&routes, &edge(), &services).len(), 2);
    assert_eq!(established(&routes, &edge(), &services[..1]).len(), 1);
}

#[test]
fn the_more_special_condition_is_asked_first() {
    let mut method = request(5, "", prefix("/app"));
    method.matches[0].method = Some("POST".to_owned());
    let mut header = request(6, "", prefix("/app"));
    header.matches[0].headers = vec![("x".to_owned(), StringMatch::Exact("1".to_owned()))];
    let requests = [
        request(1, "", prefix("/")),
        request(2, "", prefix("/app")),
        request(3, "", PathRequest::Regex("/app/v[0-9]+".to_owned())),
        request(4, "", PathRequest::Exact("/app".to_owned())),
        method,
        header,
        request(7, "", prefix("/app/v1/deep")),
    ];
    // Of one relation, since no other may ask for the same path.
    let requests = requests.map(|request| RouteRequest {
        name: request.relation.to_string(),
        relation: 1,
        ..request
    });
    let order: Vec<String> = http(&edge(), &requests)
        .iter()
        .map(|rule| rule["route"][0]["destination"]["host"].as_str().unwrap()[4..5].to_owned())
        .collect();
    assert_eq!(order, ["4", "7", "3", "5", "6", "2", "1"]);
}

#[test]
fn a_path_of_a_host_is_one_relations_whatever_else_the_others_ask_for() {
    let taken = |other: RouteRequest, what: Option<&str>| {
        let (_, problems) = routes(&[request(1, "", prefix("/app")), other]);
        let told = problems.values().next().map(ToString::to_string);
        let expect = what.map(|what| format!("{what} is taken by app-1"));
        assert_eq!(told, expect);
    };
    taken(request(2, "", prefix("/app/")), Some("prefix /app"));
    let exact = |path: &str| PathRequest::Exact(path.to_owned());
    taken(request(2, "", exact("/app")), Some("path /app"));
    taken(request(2, "", exact("/app/")), Some("path /app/"));
    let pattern = |path: &str| PathRequest::Regex(path.to_owned());
    taken(request(2, "", pattern("/app.*")), Some("expression /app.*"));
    taken(
        request(2, "", pattern("/app/.+")),
        Some("expression /app/.+"),
    );
    let mut method = request(2, "", prefix("/app"));
    method.matches[0].method = Some("GET".to_owned());
    taken(method, Some("prefix /app"));
    let mut header = request(2, "", prefix("/app"));
    header.matches[0].headers = vec![("x".to_owned(), StringMatch::Exact("1".to_owned()))];
    taken(header, Some("prefix /app"));

    taken(request(2, "", prefix("/app/below")), None);
    taken(request(2, "", prefix("/")), None);
    let mut host = request(2, "", prefix("/app"));
    host.hosts = vec!["b.example.org".to_owned()];
    taken(host, None);
}

#[test]
fn one_relation_cannot_fill_the_object_that_all_share() {
    let many = |relation: u32, hosts: usize, matches: usize| {
        let mut many = request(relation, "", prefix("/"));
        many.hosts = (0..hosts)
            .map(|n| format!("h{n}.r{relation}.example.org"))
            .collect();
        many.matches = (0..matches)
            .map(|n| MatchRequest {
                path: prefix(&format!("/p{n}")),
                method: None,
                headers: Vec::new(),
            })
            .collect();
        many
    };
    let (served, problems) = routes(&[many(1, 64, 64), many(2, 8, 64), many(3, 64, 8)]);
    assert_eq!(served.len(), 2);
    let told = problems[&(1, String::new())].to_string();
    assert!(told.ends_with("its routes are too many"), "{told}");
    for service in virtual_services(&edge(), &served) {
        assert!(service.to_object().to_string().len() < 256 << 10);
    }
    let each = |n: u32| RouteRequest {
        name: format!("r{n}"),
        ..request(1, "", prefix(&format!("/r{n}")))
    };
    let fair: Vec<RouteRequest> = (0..500).map(each).collect();
    assert_eq!(routes(&fair).0.len(), 500);
}

#[test]
fn inside_a_relation_conditions_make_another_claim() {
    let mut same_host = request(1, "b", prefix("/app/"));
    same_host.hosts = vec!["a.example.org".to_owned(), "b.example.org".to_owned()];
    let mut again = same_host.clone();
    again.name = "c".to_owned();
    let mut method = request(1, "d", prefix("/app"));
    method.matches[0].method = Some("GET".to_owned());
    let (served, problems) = routes(&[request(1, "a", prefix("/app")), same_host, again, method]);
    let served: Vec<&str> = served.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(served, ["a", "b", "d"]);
    let told = problems[&(1, "c".to_owned())].to_string();
    assert_eq!(told, "prefix /app of a.example.org is taken by app-1");
}

#[test]
fn who_names_the_gateways_own_host_means_the_default() {
    let check = |default: &str, names: &[&str], hosts: &[&str], expect: Result<&[&str], &str>| {
        let own = OwnHosts {
            default: Some(default.to_owned()),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let mut other = request(2, "", prefix("/app"));
        other.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let (served, problems) = routes_at(&own, &[request(1, "", prefix("/app")), other]);
        let got = served
            .get(1)
            .map(|route| route.hosts.iter().map(String::as_str).collect());
        let told = problems.values().next().map(ToString::to_string);
        match expect {
            Ok(expect) => assert_eq!(got, Some(expect.to_vec())),
            Err(expect) => assert_eq!(told.as_deref(), Some(expect)),
        }
    };
    let taken = Err("prefix /app is taken by app-1");
    check("*", &["lb.example.org"], &["lb.example.org"], taken);
    check(
        "*",
        &["lb.example.org"],
        &["b.example.org"],
        Ok(&["b.example.org"]),
    );
    check(
        "*",
        &["lb.example.org"],
        &["b.example.org", "lb.example.org"],
        taken,
    );
    check("apps.example.org", &[], &["apps.example.org"], taken);
    check(
        "apps.example.org",
        &[],
        &["*.example.org"],
        Ok(&["*.example.org"]),
    );
    let wide = Err("hostname \"*.example.org\" covers a name of the gateway");
    check("*", &["lb.example.org"], &["*.example.org"], wide);
}

#[test]
fn what_could_spoil_the_shared_object_is_refused() {
    let check = |change: fn(&mut RouteRequest), expect: &str| {
        let mut bad = request(1, "", prefix("/app"));
        change(&mut bad);
        let (routes, problems) = routes(&[bad, request(2, "", prefix("/good"))]);
        assert_eq!(routes.len(), 1, "{expect}");
        assert_eq!(problems[&(1, String::new())].to_string(), expect);
    };
    check(
        |r| r.hosts = vec!["a b".into()],
        "hostname \"a b\" is no host name",
    );
    check(
        |r| r.hosts = vec!["*".into()],
        "hostname \"*\" is no host name",
    );
    check(
        |r| r.hosts = vec!["10.1.2.3".into()],
        "hostname \"10.1.2.3\" is no host name",
    );
    check(|r| r.matches.clear(), "matches \"\" must not be empty");
    check(
        |r| r.matches[0].method = Some("get".into()),
        "method \"get\" is none",
    );
    check(
        |r| {
            r.matches[0].headers = vec![(
                "X-Istio_Integrator-Guard".into(),
                StringMatch::Exact("a".into()),
            )];
        },
        "header \"X-Istio_Integrator-Guard\" cannot be matched",
    );
    check(
        |r| r.matches[0].headers = vec![("x".into(), StringMatch::Regex("(".into()))],
        "expression \"(\" is no regular expression",
    );
    check(
        |r| r.matches[0].path = PathRequest::Regex("/.*".into()),
        "expression \"/.*\" must begin with / and a letter or digit",
    );
    check(
        |r| r.matches[0].path = PathRequest::Exact("/.well-known/istio-integrator/probe".into()),
        "path \"/.well-known/istio-integrator/probe\" is reserved",
    );
    let none = |r: &mut RouteRequest| {
        r.action = ActionRequest::Forward {
            backends: vec![],
            rewrite: None,
            host: None,
        }
    };
    check(none, "backends \"\" must not be empty");
    let zero = |r: &mut RouteRequest| {
        r.action = ActionRequest::Forward {
            backends: vec![to("a", 0)],
            rewrite: None,
            host: None,
        }
    };
    check(zero, "weight \"0\" must not be that of all backends");
    let code = |r: &mut RouteRequest| {
        r.action = ActionRequest::Redirect {
            scheme: None,
            host: None,
            path: None,
            port: None,
            code: 200,
        };
    };
    check(code, "statusCode \"200\" is no redirect");
}

#[test]
fn with_tls_plain_http_is_redirected_and_only_tls_is_routed() {
    let tls = Tls {
        port: 443,
        credential: "cert".to_owned(),
        redirect: true,
    };
    let secure = Edge {
        tls: Some(tls),
        ..edge()
    };
    let mut named = request(1, "", prefix("/app"));
    named.hosts = vec!["b.example.org".to_owned()];
    let requests = [named, request(2, "", prefix("/"))];
    let rules = http(&secure, &requests);
    let leading = rules.iter().filter(|rule| rule.get("route").is_some());
    for condition in leading.flat_map(|rule| rule["match"].as_array().unwrap()) {
        assert_eq!(condition["port"], 443);
    }
    let redirects: Vec<&Value> = rules
        .iter()
        .filter(|rule| rule.get("redirect").is_some())
        .collect();
    let expect = json!({"match": [{"port": 80, "uri": {"prefix": "/"}}],
        "redirect": {"scheme": "https", "redirectCode": 301}});
    assert_eq!(redirects, [&expect, &expect], "one for each host");
    let (routes, _) = routes(&requests);
    let servers = gateway(&secure, &std::collections::BTreeMap::new(), &routes).to_object()["spec"]
        ["servers"]
        .clone();
    assert_eq!(servers[0]["hosts"], json!(["*"]));
    assert_eq!(
        servers[1],
        json!({
            "hosts": ["apps.example.org", "b.example.org"],
            "port": {"name": "https", "number": 443, "protocol": "HTTPS"},
            "tls": {"mode": "SIMPLE", "credentialName": "cert", "minProtocolVersion": "TLSV1_2"},
        })
    );
}

#[test]
fn open_routes_carry_a_name_that_only_the_filter_knows_and_the_guard() {
    let mut open = request(1, "", prefix("/status"));
    open.open = true;
    let guarded = Edge {
        guard: Some("token".to_owned()),
        ..edge()
    };
    let rules = http(&guarded, &[open, request(2, "", prefix("/app"))]);
    let name = crate::auth::open_route_name("token");
    assert_eq!(
        (rules[0]["name"].as_str(), rules[1].get("name")),
        (Some(name.as_str()), None)
    );
    assert_ne!(name, crate::auth::open_route_name("other"));
    assert_eq!(
        rules[0]["match"][0]["headers"][crate::auth::GUARD_HEADER]["exact"],
        "token"
    );
}

#[test]
fn token_holders_have_rules_of_their_own_before_the_others() {
    let tokens = |only| Tokens {
        issuers: ["https://id.example.org".to_owned()].into(),
        only,
    };
    let edge = |only| Edge {
        guard: Some("token".to_owned()),
        tokens: Some(tokens(only)),
        ..edge()
    };
    let mut open = request(2, "", prefix("/status"));
    open.open = true;
    let requests = [request(1, "", prefix("/app")), open];
    let rules = http(&edge(false), &requests);
    assert_eq!(rules.len(), 3);
    let issuer = |rule: &Value| {
        let headers = &rule["match"][0]["headers"];
        headers
            .get(crate::auth::ISSUER_CLAIM)
            .map(|value| value["exact"].clone())
    };
    let holders: Vec<&Value> = rules.iter().filter(|rule| issuer(rule).is_some()).collect();
    assert_eq!(holders.len(), 1);
    assert_eq!(
        holders[0]["name"],
        crate::auth::open_route_name("token").as_str()
    );
    assert_eq!(holders[0]["match"].as_array().unwrap().len(), 2);
    let position =
        |wanted: fn(&&Value) -> bool| rules.iter().position(|rule| wanted(&rule)).unwrap();
    let app =
        |rule: &&Value| rule["route"][0]["destination"]["host"] == "svc-1.lab.svc.cluster.local";
    assert!(position(app) < rules.iter().rposition(|rule| app(&rule)).unwrap());
    assert!(issuer(&rules[position(app)]).is_some());

    let refusing = http(&edge(true), &requests);
    let refused: Vec<&Value> = refusing
        .iter()
        .filter(|rule| rule.get("directResponse").is_some())
        .collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["directResponse"]["status"], 401);
}

#[test]
fn backends_that_want_their_clients_protocol_get_a_rule_each() {
    let mut grpc = request(1, "a", prefix("/svc.Books"));
    grpc.client_protocol = true;
    let mut twin = grpc.clone();
    twin.name = "b".to_owned();
    twin.matches[0].path = prefix("/svc.Shelves");
    let (routes, _) = routes(&[grpc, twin, request(2, "", prefix("/"))]);
    let rules = client_protocol_rules(&edge(), &routes);
    assert_eq!(rules.len(), 1);
    let object = rules[0].to_object();
    assert_eq!(object["metadata"]["namespace"], "lab");
    assert_eq!(
        object["spec"],
        json!({
            "host": "svc-1.lab.svc.cluster.local",
            "trafficPolicy": {"connectionPool": {"http": {"useClientProtocol": true}}},
        })
    );
}

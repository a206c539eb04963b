//! Traefik's `ingress`, version 2: the databags of the library itself, read by ours, and ours read
//! by it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use interop::peers::ask;
use juju_hooks::Databag;
use relations::{Ingress, Scheme, TraefikIngress, TraefikReply, UnitAddress, ingress, sdi};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// What a real requirer did in a hook: the databags it wrote and the URL it read.
#[derive(Debug, Deserialize)]
struct Asked {
    app: Databag,
    unit: Databag,
    url: Option<String>,
}

/// What a real provider did in a hook: the databag it wrote, and what it read.
#[derive(Debug, Deserialize)]
struct Served {
    app: Databag,
    ready: bool,
    data: Value,
    error: Option<String>,
}

fn run<T: DeserializeOwned>(sides: &[Value]) -> Vec<T> {
    ask("ingress", sides).unwrap()
}

fn requirers(asks: &[(Value, Databag)]) -> Vec<Asked> {
    let side = |(request, ours): &(Value, Databag)| json!({"role": "requirer", "request": request, "remote_app": ours});
    run(&asks.iter().map(side).collect::<Vec<_>>())
}

fn providers(ours: &[(Databag, Databag)], publish: Option<&str>) -> Vec<Served> {
    let side = |(app, unit): &(Databag, Databag)| json!({"role": "provider", "remote_app": app, "remote_unit": unit, "publish": publish});
    run(&ours.iter().map(side).collect::<Vec<_>>())
}

fn wish() -> TraefikIngress {
    TraefikIngress {
        model: "lab".into(),
        name: "books".into(),
        port: 8080,
        strip_prefix: false,
        redirect_https: false,
        scheme: Scheme::Http,
        units: vec![UnitAddress {
            host: "books.lab.svc.cluster.local".into(),
            ip: Some("192.0.2.7".into()),
        }],
    }
}

fn request() -> Value {
    json!({"port": 8080, "host": "books.lab.svc.cluster.local", "ip": "192.0.2.7"})
}

#[test]
fn a_wish_of_the_library_is_read_with_its_values() {
    let v6 = UnitAddress {
        ip: Some("2001:db8::7".into()),
        ..wish().units[0].clone()
    };
    let cases = [
        (json!({}), wish()),
        (
            json!({"strip_prefix": true, "redirect_https": true, "scheme": "https"}),
            TraefikIngress {
                strip_prefix: true,
                redirect_https: true,
                scheme: Scheme::Https,
                ..wish()
            },
        ),
        (
            json!({"scheme": "h2c"}),
            TraefikIngress {
                scheme: Scheme::H2c,
                ..wish()
            },
        ),
        (
            json!({"healthcheck_params": {"path": "/ready", "interval": "10s"}, "port": 1}),
            TraefikIngress { port: 1, ..wish() },
        ),
        (
            json!({"ip": "2001:db8::7"}),
            TraefikIngress {
                units: vec![v6],
                ..wish()
            },
        ),
    ];
    let asks = cases.clone().map(|(more, _)| {
        let mut request = request();
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        (request, Databag::new())
    });
    for (Asked { app, unit, url }, (_, expect)) in requirers(&asks).iter().zip(cases) {
        assert_eq!(
            Ingress::decode(app, [unit]),
            Ok(Some(Ingress::Traefik(expect))),
            "{app:?}"
        );
        assert_eq!(*url, None);
    }
}

#[test]
fn a_wish_of_ours_is_read_by_the_library_with_its_values() {
    let ours = [
        wish(),
        TraefikIngress {
            strip_prefix: true,
            redirect_https: true,
            scheme: Scheme::H2c,
            ..wish()
        },
        TraefikIngress {
            name: "bücher \"and\" more".into(),
            units: vec![UnitAddress {
                host: "books-0.books".into(),
                ip: None,
            }],
            ..wish()
        },
    ];
    let bags = ours
        .clone()
        .map(|wish| (wish.encode(), wish.units[0].encode()));
    for (read, ours) in providers(&bags, None).iter().zip(ours) {
        assert_eq!((read.ready, &read.error), (true, &None));
        let app = &read.data["app"];
        assert_eq!(app["model"], ours.model);
        assert_eq!(app["name"], ours.name);
        assert_eq!(app["port"], ours.port);
        assert_eq!(app["strip-prefix"], ours.strip_prefix);
        assert_eq!(app["redirect-https"], ours.redirect_https);
        assert_eq!(app["scheme"], ours.scheme.as_str());
        let unit = &ours.units[0];
        assert_eq!(
            read.data["units"],
            json!([{"host": unit.host, "ip": unit.ip}])
        );
    }
}

#[test]
fn an_answer_of_ours_is_the_url_the_library_reads() {
    let url = "http://192.0.2.1/lab-books";
    let alone = TraefikReply { url: url.into() }.encode();
    // The versions of the other dialect stand in the same databag.
    let mut beside = alone.clone();
    beside.extend(sdi::versions(ingress::VERSIONS));
    for asked in requirers(&[(request(), alone), (request(), beside)]) {
        assert_eq!(asked.url.as_deref(), Some(url));
    }
}

#[test]
fn the_library_waits_while_only_the_other_dialect_has_been_spoken() {
    let asked = requirers(&[(request(), sdi::versions(ingress::VERSIONS))]);
    assert_eq!(asked[0].url, None);
    let read = Ingress::decode(&asked[0].app, [&asked[0].unit]);
    assert_eq!(read, Ok(Some(Ingress::Traefik(wish()))));
}

#[test]
fn an_answer_of_the_library_is_the_url_we_read() {
    let url = "https://front.example/lab-books";
    let served = providers(&[(wish().encode(), wish().units[0].encode())], Some(url));
    let read = TraefikReply::decode(&served[0].app);
    assert_eq!(read, Ok(Some(TraefikReply { url: url.into() })));
}

#[test]
fn what_the_library_refuses_we_refuse_too() {
    let unit = wish().units[0].encode();
    let bags = [
        ("port", "\"8080\""),
        ("port", "0"),
        ("port", "70000"),
        ("port", ""),
        ("model", "lab"),
        ("name", "7"),
        ("scheme", "\"ftp\""),
        ("strip-prefix", "{}"),
    ]
    .map(|(key, value)| {
        let mut bag = wish().encode();
        // Juju takes an empty value for no value.
        bag.remove(key);
        bag.extend((!value.is_empty()).then(|| (key.to_owned(), value.to_owned())));
        (bag, unit.clone())
    });
    for (theirs, (bag, unit)) in providers(&bags, None).iter().zip(&bags) {
        assert!(
            !theirs.ready && theirs.error.is_some(),
            "{bag:?}: {theirs:?}"
        );
        assert!(Ingress::decode(bag, [unit]).is_err(), "{bag:?}");
    }
}

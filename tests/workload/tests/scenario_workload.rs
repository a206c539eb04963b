//! The sample charms run their server and say what the ingress needs to know.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use juju_charm::{Charm, Event};
use juju_sim::scenario::{Relation, Scenario, State, databag};
use kube_apply::ObjectRef;
use kube_apply::testing::{Controllers, FakeApi};
use relations::{Ingress, IngressAuth, KubeflowIngress, TraefikIngress, TraefikReply};
use serde_json::{Map, json};
use workload::cluster::Cluster;
use workload::{Dashboard, Echo, Flavour, Gatekeeper, Workload};

fn hook<F: Flavour>(api: &FakeApi, event: Event, state: &State) -> State
where
    Workload<F>: Charm<Fx = Cluster>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let scenario = Scenario::<Workload<F>>::new().unwrap();
    runtime.block_on(async {
        let fx = Cluster::new(api.engine());
        scenario
            .run_async(event, Map::new(), state, &fx)
            .await
            .unwrap()
    })
}

fn cluster() -> FakeApi {
    let api = FakeApi::new();
    api.seed_namespace("lab");
    api
}

fn deployment() -> ObjectRef {
    ObjectRef::namespaced("apps/v1", "Deployment", "lab", "meshy")
}

fn leader(relation: Relation) -> State {
    State::new("meshy/0").leader().relation(relation)
}

fn told(state: &State) -> &Relation {
    &state.relations[0]
}

#[test]
fn echo_asks_in_traefiks_dialect_and_shows_its_url() {
    let api = cluster();
    let reply = TraefikReply {
        url: "http://192.0.2.7/lab-meshy".to_owned(),
    };
    let relation = Relation::new("ingress", 1, "edge").remote_app_data(reply.encode());
    let after = hook::<Echo>(&api, Event::ConfigChanged, &leader(relation));
    assert_eq!(after.unit_status.message, "http://192.0.2.7/lab-meshy");
    let Relation {
        local_app_data,
        local_unit_data,
        ..
    } = told(&after);
    let ingress = TraefikIngress::decode(local_app_data, [local_unit_data])
        .unwrap()
        .unwrap();
    assert_eq!(
        (ingress.name.as_str(), ingress.port, ingress.strip_prefix),
        ("meshy", 8080, true)
    );
    assert_eq!(ingress.units[0].host, "meshy-web.lab.svc.cluster.local");
    let pod = api.get(&deployment()).unwrap()["spec"]["template"].clone();
    assert_eq!(
        pod["metadata"]["labels"]["sidecar.istio.io/inject"],
        "false"
    );

    let after = hook::<Echo>(
        &api,
        Event::ConfigChanged,
        &after.config("strip-prefix", false),
    );
    let ingress = Ingress::decode(&told(&after).local_app_data, [])
        .unwrap()
        .unwrap();
    assert!(matches!(
        ingress,
        Ingress::Traefik(TraefikIngress {
            strip_prefix: false,
            ..
        })
    ));
}

#[test]
fn dashboard_asks_in_kubeflows_dialect() {
    let api = cluster();
    let relation = Relation::new("ingress", 1, "edge")
        .remote_app_data(databag([("_supported_versions", "- v1\n- v2\n")]));
    let state = leader(relation).config("prefix", "/dash/");
    let after = hook::<Dashboard>(&api, Event::ConfigChanged, &state);
    let expect = KubeflowIngress {
        service: "meshy-web".to_owned(),
        port: 8080,
        namespace: Some("lab".to_owned()),
        prefix: "/dash/".to_owned(),
        rewrite: Some("/".to_owned()),
    };
    let said = Ingress::decode(&told(&after).local_app_data, []);
    assert_eq!(said, Ok(Some(Ingress::Kubeflow(expect))));
    assert_eq!(after.unit_status.message, "prefix /dash/");
}

#[test]
fn gatekeeper_offers_its_server_in_authorizing_mode() {
    let api = cluster();
    let relation = Relation::new("ingress-auth", 1, "edge");
    let after = hook::<Gatekeeper>(&api, Event::ConfigChanged, &leader(relation));
    let auth = IngressAuth::decode(&told(&after).local_app_data)
        .unwrap()
        .unwrap();
    assert_eq!((auth.service.as_str(), auth.port), ("meshy-web", 8080));
    assert_eq!(auth.allowed_response_headers, ["kubeflow-userid"]);
    let server = &api.get(&deployment()).unwrap()["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(server["args"], json!(["auth"]));
}

#[test]
fn a_server_that_does_not_run_yet_is_waited_for_and_goes_with_the_application() {
    let api = cluster();
    api.set_controllers(Controllers {
        roll_out: false,
        ..Controllers::default()
    });
    let after = hook::<Gatekeeper>(&api, Event::ConfigChanged, &State::new("meshy/0").leader());
    assert_eq!(after.unit_status.status, "waiting");
    assert!(
        after.unit_status.message.contains("meshy"),
        "{}",
        after.unit_status.message
    );
    api.set_controllers(Controllers::default());
    let after = hook::<Gatekeeper>(&api, Event::UpdateStatus, &after);
    assert_eq!(after.unit_status.status, "active");
    api.forget_requests();
    hook::<Gatekeeper>(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
    hook::<Gatekeeper>(&api, Event::Remove, &after.planned_units(0));
    assert!(api.get(&deployment()).is_none());
}

//! The two charms in place of the one, with people who do what they are asked for.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;

use common::cluster::{FILTER, SECRET, custom, move_and_split, split};
use common::{
    Line, Noon, OLD, differences, listing, people, pilot_cluster, planned, snapshot, with_people,
};
use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use migration::execute::{Limits, Silent};
use migration::plan::{GatewayChoice, plan};
use migration::{Executor, Request, Stand};
use serde_json::{Value, json};

const NETWORKING: &str = "networking.istio.io/v1";

fn until(step: &str) -> Limits {
    Limits {
        until: Some(step.to_owned()),
        ..Limits::default()
    }
}

async fn done(fake: &FakeApi, request: &Request) {
    let line = Line::new(fake);
    let stand = with_people(&line, request, &Limits::default()).await;
    assert_eq!(stand.expect("goes"), Stand::Done);
    assert_eq!(line.violations(), Vec::<String>::new());
}

/// The command line's rollback, again and again, with people.
async fn back(fake: &FakeApi) {
    let line = Line::new(fake);
    for _ in 0..20 {
        let executor = Executor::new(&line, &Noon, "tester");
        let stand = executor.rollback(&Limits::default(), &Silent).await;
        match stand.expect("goes back") {
            Stand::RolledBack => {
                assert_eq!(line.violations(), Vec::<String>::new());
                return;
            }
            Stand::Waiting { commands, .. } => {
                assert_ne!(commands, Vec::<String>::new());
                for command in commands {
                    people::act(fake, &command);
                    line.look();
                }
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("{:?}", line.violations());
}

#[tokio::test(start_paused = true)]
async fn routes_and_authorization_change_hands_without_a_gap() {
    let fake = pilot_cluster();
    done(&fake, &split(GatewayChoice::KeepAddress)).await;
    for (kind, name, there) in [
        ("VirtualService", "notebooks", false),
        ("VirtualService", "notebooks-bridge", false),
        ("VirtualService", "notebooks-integrated", true),
        ("EnvoyFilter", FILTER, false),
        ("EnvoyFilter", "integrated", true),
    ] {
        let id = ObjectRef::namespaced(NETWORKING, kind, OLD, name);
        assert_eq!(fake.get(&id).is_some(), there, "{id}");
    }
    let service = ObjectRef::namespaced("v1", "Service", OLD, "istio-ingressgateway-workload");
    let service = fake.get(&service).expect("the same Service");
    let owner = &service["metadata"]["labels"]["app.kubernetes.io/managed-by"];
    assert_eq!(owner, "istio-k8s");
}

#[tokio::test(start_paused = true)]
async fn on_the_way_back_of_a_hand_over_the_gateway_is_never_open_and_no_path_without_a_route() {
    let request = split(GatewayChoice::KeepAddress);
    let steps = planned(&pilot_cluster(), &request).await.steps;
    let mut tried = 0;
    for step in steps.iter().take_while(|step| !step.forward_only) {
        let fake = pilot_cluster();
        let before = listing(&fake);
        let line = Line::new(&fake);
        let stand = with_people(&line, &request, &until(&step.id)).await;
        assert!(matches!(stand, Ok(Stand::Paused { .. })), "{stand:?}");
        back(&fake).await;
        let left = differences(&before, &listing(&fake));
        // The application itself is gone once a person has removed it.
        let removed = ["- StatefulSet kubeflow-lab/istio-ingressgateway".to_owned()];
        let left: Vec<String> = left.into_iter().filter(|l| !removed.contains(l)).collect();
        assert_eq!(left, Vec::<String>::new(), "{}", step.id);
        tried += 1;
    }
    println!("rolled back from {tried} of {} steps", steps.len());
    assert!(tried > 10);
}

#[tokio::test]
async fn filters_of_somebody_else_are_left_alone() {
    let fake = pilot_cluster();
    let spec = json!({
        "workloadSelector": {"labels": {"istio": "ingressgateway"}},
        "configPatches": [{"patch": {"value": {"name": "envoy.filters.http.ext_authz"}}}],
    });
    let other = custom(NETWORKING, "EnvoyFilter", OLD, "theirs", json!({}), spec);
    fake.seed(other);
    let plan = planned(&fake, &split(GatewayChoice::Stay)).await;
    let actions = serde_json::to_string(&plan.steps).expect("json");
    assert!(!actions.contains("theirs"));
    assert!(actions.contains(FILTER));
    assert!(
        plan.notes.iter().any(|note| note.contains("theirs")),
        "{:?}",
        plan.notes
    );
}

#[tokio::test]
async fn a_copy_has_no_field_that_its_original_has_not() {
    let plan = planned(&pilot_cluster(), &split(GatewayChoice::Stay)).await;
    let step = plan.step("bridge-routes").expect("the step");
    for action in &step.effect {
        let migration::plan::Action::Apply { object, .. } = action else {
            panic!("{action:?}")
        };
        let routed = !object["spec"]["gateways"].is_null();
        assert_eq!(object["spec"].get("gateways").is_some(), routed, "{object}");
    }
}

async fn refused(fake: &FakeApi, request: &Request) -> Vec<&'static str> {
    let line = Line::new(fake);
    let refusals = plan(&snapshot(&line).await, request)
        .err()
        .unwrap_or_default();
    refusals.into_iter().map(|refusal| refusal.code).collect()
}

#[tokio::test]
async fn a_hand_over_from_a_charm_that_is_not_there_is_refused() {
    let mut other = split(GatewayChoice::Stay);
    other.split.as_mut().expect("a split").pilot = "meshy".to_owned();
    assert_eq!(refused(&pilot_cluster(), &other).await, ["no-pilot"]);
    let fake = pilot_cluster();
    fake.remove(&ObjectRef::namespaced(
        NETWORKING,
        "Gateway",
        OLD,
        "lab-gateway",
    ));
    let wanted = split(GatewayChoice::Stay);
    assert_eq!(refused(&fake, &wanted).await, ["no-gateway"]);
}

#[tokio::test]
async fn a_route_of_which_nobody_can_tell_what_it_serves_is_refused() {
    let fake = pilot_cluster();
    let id = ObjectRef::namespaced(NETWORKING, "VirtualService", OLD, "notebooks");
    fake.edit("x", &id, |route| route["spec"]["http"] = json!([]));
    let wanted = split(GatewayChoice::Stay);
    assert_eq!(refused(&fake, &wanted).await, ["unknown-route"]);
}

#[tokio::test]
async fn applications_of_other_names_are_in_the_commands() {
    let mut request = split(GatewayChoice::Stay);
    let split = request.split.as_mut().expect("a split");
    split.integrator = "edge".to_owned();
    split.authorizer = "gatekeeper".to_owned();
    let plan = planned(&pilot_cluster(), &request).await;
    let commands = |step: &str| plan.step(step).expect("the step").commands.clone();
    assert_eq!(
        commands("hand-over-authorization"),
        [
            "juju remove-relation istio-pilot:ingress-auth gatekeeper:ingress-auth",
            "juju integrate edge:ingress-auth gatekeeper:ingress-auth",
        ]
    );
    assert_eq!(
        commands("hand-over-notebooks")[1],
        "juju integrate edge:ingress notebooks:ingress"
    );
}

#[tokio::test(start_paused = true)]
async fn a_label_that_the_old_charm_wrote_again_does_not_let_it_purge() {
    let fake = pilot_cluster();
    let request = split(GatewayChoice::Stay);
    let line = Line::new(&fake);
    let stand = with_people(&line, &request, &until("lift-gateway")).await;
    assert!(matches!(stand, Ok(Stand::Paused { .. })), "{stand:?}");
    let istiod = ObjectRef::namespaced("apps/v1", "Deployment", OLD, "istiod");
    fake.edit("istio-operator", &istiod, |live| {
        live["metadata"]["labels"]["operator.istio.io/component"] = "Pilot".into();
    });
    done(&fake, &request).await;
    assert!(fake.get(&istiod).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_label_that_is_written_again_at_the_very_end_keeps_the_guard() {
    let fake = pilot_cluster();
    let request = split(GatewayChoice::Stay);
    let line = Line::new(&fake);
    with_people(&line, &request, &until("sweep"))
        .await
        .expect("goes");
    let id = ObjectRef::cluster(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "virtualservices.networking.istio.io",
    );
    fake.edit("istio-operator", &id, |live| {
        live["metadata"]["labels"]["operator.istio.io/component"] = "Base".into();
    });
    let executor = Executor::new(&line, &Noon, "tester");
    let stand = executor.run(&Limits::default(), &Silent).await;
    let Ok(Stand::Waiting { step, why, .. }) = stand else {
        panic!("{stand:?}")
    };
    assert_eq!(step, "unguard");
    assert!(why.contains("take the label off"), "{why}");
}

/// Where a hand-over of authorization stands, with the filter in `namespace`.
async fn waits_with(change: impl Fn(&FakeApi)) -> String {
    let fake = pilot_cluster();
    let request = split(GatewayChoice::Stay);
    let line = Line::new(&fake);
    with_people(&line, &request, &until("deploy-integrator"))
        .await
        .expect("goes");
    change(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let stand = executor
        .run(&until("hand-over-authorization"), &Silent)
        .await;
    match stand.expect("answers") {
        Stand::Waiting { why, .. } => why,
        Stand::Paused { .. } => String::new(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_reach_the_gateway_does_not_guard_it() {
    let why = waits_with(|fake| fake.seed(people::guard("appc"))).await;
    assert_eq!(why, "nobody else guards the gateway yet");
    let why = waits_with(|fake| {
        let gateway = ObjectRef::namespaced(
            "apps/v1",
            "Deployment",
            OLD,
            "istio-ingressgateway-workload",
        );
        fake.remove(&gateway);
        fake.seed(people::guard(OLD));
        common::play::settle(fake);
    })
    .await;
    assert_eq!(why, format!("no gateway runs in {OLD}"));
    assert_eq!(waits_with(|fake| fake.seed(people::guard(OLD))).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_move_and_a_hand_over_in_one_plan_end_with_everything_in_its_place() {
    let fake = pilot_cluster();
    done(&fake, &move_and_split(GatewayChoice::KeepAddress)).await;
    let proxies = common::play::proxies(&fake);
    assert!(proxies.iter().all(|p| p.revision == "m1"), "{proxies:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_in_a_gateway_s_environment_is_in_no_plan() {
    let fake = pilot_cluster();
    let gateway = ObjectRef::namespaced(
        "apps/v1",
        "Deployment",
        OLD,
        "istio-ingressgateway-workload",
    );
    let variable = json!({"name": "TOKEN", "value": SECRET});
    fake.edit("x", &gateway, |live| {
        let env = &mut live["spec"]["template"]["spec"]["containers"][0]["env"];
        env.as_array_mut()
            .expect("variables")
            .push(variable.clone());
    });
    common::play::settle(&fake);
    let request = common::cluster::request();
    let plan = planned(&fake, &request).await;
    assert!(!serde_json::to_string(&plan).expect("json").contains(SECRET));
    done(&fake, &request).await;
    let live = fake.get(&gateway).expect("there");
    let env = live["spec"]["template"]["spec"]["containers"][0]["env"].as_array();
    let env: Vec<&Value> = env.into_iter().flatten().collect();
    assert!(env.contains(&&variable), "{env:?}");
    let address = json!({"name": "CA_ADDR", "value": "istiod-m1.istio-lab.svc:15012"});
    assert!(env.contains(&&address), "{env:?}");
}

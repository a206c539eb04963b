//! Any order of relating, changing, breaking, leading and dying: the end depends on the last model only.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use std::collections::BTreeMap;

use common::*;
use juju_charm::Event;
use juju_hooks::RelationKind;
use juju_sim::scenario::{Relation, State};
use kube_apply::testing::FakeApi;
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
enum Step {
    /// A relation comes, or says something else: its number, which of three shapes, which of three paths.
    Say(u32, u8, u8),
    /// A relation goes.
    Break(u32),
    /// The option `external-hostname`.
    Host(bool),
    /// The option `workload-policies`.
    Policies(bool),
    /// This unit leads, or another one does.
    Lead(bool),
    /// The API server dies after so many writes, or is back.
    Die(Option<u32>),
    /// Somebody deletes one of our objects.
    Delete(u8),
    /// A hook without a cause.
    UpdateStatus,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..5, 0u8..3, 0u8..3).prop_map(|(id, shape, path)| Step::Say(id, shape, path)),
        2 => (1u32..5).prop_map(Step::Break),
        1 => any::<bool>().prop_map(Step::Host),
        1 => any::<bool>().prop_map(Step::Policies),
        1 => any::<bool>().prop_map(Step::Lead),
        1 => proptest::option::of(0u32..4).prop_map(Step::Die),
        1 => (0u8..8).prop_map(Step::Delete),
        1 => Just(Step::UpdateStatus),
    ]
}

fn relation(id: u32, shape: u8, path: u8) -> Relation {
    let app = format!("app-{id}");
    let path = ["/a", "/a/b", "/c"][usize::from(path)];
    match shape {
        0 => kubeflow(id, &app, path),
        1 => traefik(id, &app),
        _ => {
            let route = json!({"model": "lab", "http_routes": [{
                "name": "r", "listener": {"port": 80, "protocol": "HTTP"},
                "hostnames": ["b.example.org"],
                "matches": [{"path": {"type": "PathPrefix", "value": path}}],
                "backends": [{"service": app, "port": 8080}]}]});
            routes("istio-ingress-route", id, &app, &route)
        }
    }
}

/// Our objects: what they are called and what they say.
fn written(api: &FakeApi) -> BTreeMap<String, Value> {
    let ours = |object: &Value| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "istio-integrator"
    };
    let named = |object: Value| {
        let name = format!(
            "{} {}/{}",
            object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]
        );
        (name, object["spec"].clone())
    };
    api.objects().into_iter().filter(ours).map(named).collect()
}

fn without(state: &State, id: u32) -> State {
    let mut state = state.clone();
    state.relations.retain(|relation| relation.id.0 != id);
    state
}

/// A hook after a step. What was said in databags before stays, as Juju keeps it.
fn apply(api: &FakeApi, step: &Step, state: State) -> State {
    match step {
        Step::Say(id, shape, path) => {
            let mut said = relation(*id, *shape, *path);
            if let Some(known) = state.relations.iter().find(|relation| relation.id.0 == *id) {
                if known.endpoint != said.endpoint {
                    return state;
                }
                said.local_app_data.clone_from(&known.local_app_data);
            }
            let event = said.clone().event(RelationKind::Changed, None);
            hook(api, event, &without(&state, *id).relation(said))
        }
        Step::Break(id) => {
            let Some(known) = state.relations.iter().find(|relation| relation.id.0 == *id) else {
                return state;
            };
            let mut known = known.clone();
            known.remote_units.clear();
            let event = known.clone().event(RelationKind::Broken, None);
            let state = without(&state, *id).relation(known);
            without(&hook(api, event, &state), *id)
        }
        Step::Host(set) => {
            let host = if *set { "a.example.org" } else { "" };
            config_changed(api, &state.config("external-hostname", host))
        }
        Step::Policies(on) => config_changed(api, &state.config("workload-policies", *on)),
        Step::Lead(leads) => {
            let mut state = state;
            state.leader = *leads;
            let event = if *leads {
                Event::LeaderElected
            } else {
                Event::UpdateStatus
            };
            hook(api, event, &state)
        }
        Step::Die(after) => {
            match after {
                Some(writes) => api.die_after_writes(*writes),
                None => api.revive(),
            }
            state
        }
        Step::Delete(which) => {
            let ours: Vec<Value> = api
                .objects()
                .into_iter()
                .filter(|object| {
                    object["metadata"]["labels"]["app.kubernetes.io/managed-by"]
                        == "istio-integrator"
                })
                .collect();
            if let Some(object) = ours.get(usize::from(*which) % ours.len().max(1)) {
                let object = kube_apply::ObjectRef::namespaced(
                    object["apiVersion"].as_str().expect("a version"),
                    object["kind"].as_str().expect("a kind"),
                    object["metadata"]["namespace"]
                        .as_str()
                        .expect("a namespace"),
                    object["metadata"]["name"].as_str().expect("a name"),
                );
                api.remove(&object);
            }
            state
        }
        Step::UpdateStatus => hook(api, Event::UpdateStatus, &state),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_end_depends_on_the_last_model_only(steps in proptest::collection::vec(step(), 0..16)) {
        let api = cluster();
        let mut state = leader();
        for step in &steps {
            state = apply(&api, step, state);
        }
        api.revive();
        state.leader = true;
        let end = hook(&api, Event::UpdateStatus, &state);

        let fresh = cluster();
        let mut model = end.clone();
        for relation in &mut model.relations {
            relation.local_app_data.clear();
        }
        let expect = config_changed(&fresh, &model);
        prop_assert_eq!(written(&api), written(&fresh));
        prop_assert_eq!(status(&end), status(&expect));
        for (a, b) in end.relations.iter().zip(&expect.relations) {
            prop_assert_eq!(&a.local_app_data, &b.local_app_data);
        }
        api.forget_requests();
        hook(&api, Event::UpdateStatus, &end);
        prop_assert_eq!(api.writes(), Vec::<String>::new());
    }
}

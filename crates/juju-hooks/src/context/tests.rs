//! What the context makes of the variables that Juju sets.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::event::{
    ActionCall, PLAIN, PebbleEvent, PebbleKind, RelationEvent, RelationKind, SecretEvent,
    SecretKind, StorageEvent, StorageKind,
};
use crate::ids::{EndpointName, RelationId, SecretId};
use crate::storage::StorageForm;

const BASE: [(&str, &str); 6] = [
    ("JUJU_UNIT_NAME", "meshy/0"),
    ("JUJU_MODEL_NAME", "lab"),
    ("JUJU_MODEL_UUID", "0d5f2a7c-8a57-4d3e-9b21-6f1c5a0e7d42"),
    ("JUJU_CHARM_DIR", "/charm"),
    ("JUJU_VERSION", "3.6.9"),
    ("JUJU_HOOK_NAME", ""),
];

fn context(more: &[(&str, &str)]) -> Result<Context, ContextError> {
    Context::from_vars(BASE.iter().chain(more).map(|(k, v)| (*k, *v)))
}

fn event(path: &str, more: &[(&str, &str)]) -> Event {
    let mut vars = vec![("JUJU_DISPATCH_PATH", path)];
    vars.extend(more);
    context(&vars).unwrap().event
}

fn relation(kind: RelationKind, app: Option<&str>, unit: Option<&str>) -> RelationEvent {
    RelationEvent {
        endpoint: EndpointName::new("mesh-info").unwrap(),
        id: RelationId(3),
        kind,
        remote_app: app.map(|app| app.parse().unwrap()),
        remote_unit: unit.map(|unit| unit.parse().unwrap()),
        departing_unit: None,
    }
}

#[test]
fn the_dispatch_path_alone_names_the_event() {
    for (name, plain) in PLAIN {
        assert_eq!(event(&format!("hooks/{name}"), &[]), plain);
    }
    for later in [
        "invented-later",
        "x-relation-mended",
        "x-pebble-tired",
        "secret-told",
        "-storage-attached",
        "-relation-changed",
        "-pebble-ready",
    ] {
        assert_eq!(
            event(&format!("hooks/{later}"), &[]),
            Event::Unknown(later.to_owned())
        );
    }
}

#[test]
fn an_action_may_have_a_hooks_name() {
    let vars = [("JUJU_ACTION_NAME", "install"), ("JUJU_ACTION_UUID", "7")];
    let call = ActionCall {
        name: "install".to_owned(),
        id: "7".to_owned(),
    };
    assert_eq!(event("actions/install", &vars), Event::Action(call));
}

#[test]
fn an_application_level_change_has_no_unit() {
    let vars = [
        ("JUJU_RELATION", "mesh-info"),
        ("JUJU_RELATION_ID", "mesh-info:3"),
        ("JUJU_REMOTE_APP", "web"),
        ("JUJU_REMOTE_UNIT", ""),
    ];
    let expect = relation(RelationKind::Changed, Some("web"), None);
    assert_eq!(
        event("hooks/mesh-info-relation-changed", &vars),
        Event::Relation(expect)
    );
}

#[test]
fn a_broken_relation_may_come_without_its_application() {
    let expect = Event::Relation(relation(RelationKind::Broken, None, None));
    let path = "hooks/mesh-info-relation-broken";
    let id = ("JUJU_RELATION_ID", "mesh-info:3");
    assert_eq!(event(path, &[id]), expect);
    assert_eq!(
        event(
            path,
            &[id, ("JUJU_REMOTE_APP", ""), ("JUJU_REMOTE_UNIT", "")]
        ),
        expect
    );
}

#[test]
fn a_departing_unit_is_told_apart_from_the_remote_one() {
    let vars = [
        ("JUJU_RELATION_ID", "mesh-info:3"),
        ("JUJU_REMOTE_APP", "web"),
        ("JUJU_REMOTE_UNIT", "web/1"),
        ("JUJU_DEPARTING_UNIT", "meshy/0"),
    ];
    let mut expect = relation(RelationKind::Departed, Some("web"), Some("web/1"));
    expect.departing_unit = Some("meshy/0".parse().unwrap());
    assert_eq!(
        event("hooks/mesh-info-relation-departed", &vars),
        Event::Relation(expect)
    );
}

#[test]
fn what_is_empty_counts_as_unset() {
    let context = context(&[
        ("JUJU_DISPATCH_PATH", "hooks/start"),
        ("JUJU_MACHINE_ID", ""),
        ("JUJU_AVAILABILITY_ZONE", ""),
        ("JUJU_PRINCIPAL_UNIT", ""),
        ("JUJU_CHARM_HTTP_PROXY", ""),
        ("JUJU_API_ADDRESSES", "10.0.0.1:17070 [fd00::1]:17070"),
        ("KUBERNETES_SERVICE_HOST", "10.152.183.1"),
        ("KUBERNETES_SERVICE_PORT_HTTPS", "6443"),
    ])
    .unwrap();
    assert_eq!(context.machine_id, None);
    assert_eq!(context.principal_unit, None);
    assert_eq!(context.proxies, Proxies::default());
    assert_eq!(context.api_addresses, ["10.0.0.1:17070", "[fd00::1]:17070"]);
    assert_eq!(context.kubernetes, Some(("10.152.183.1".to_owned(), 6443)));
    assert!(!context.debug);
}

#[test]
fn a_restricted_hook_may_come_without_a_version() {
    let mut vars: BTreeMap<&str, &str> = BASE.into_iter().collect();
    vars.remove("JUJU_VERSION");
    vars.insert("JUJU_DISPATCH_PATH", "hooks/meter-status-changed");
    let context = Context::from_vars(vars).unwrap();
    assert_eq!(context.juju_version, None);
    assert!(context.event.is_restricted());
}

#[test]
fn the_base_to_upgrade_to_is_told() {
    let vars = [
        ("JUJU_DISPATCH_PATH", "hooks/pre-series-upgrade"),
        ("JUJU_TARGET_BASE", "ubuntu@22.04"),
    ];
    let told = context(&vars).unwrap();
    assert_eq!(told.target_base.as_deref(), Some("ubuntu@22.04"));
    let again = Context::from_vars(told.to_vars()).unwrap();
    assert_eq!(again.target_base, told.target_base);
}

#[test]
fn containers_are_where_a_pod_has_them_unless_simulated() {
    let start = ("JUJU_DISPATCH_PATH", "hooks/start");
    let check = |vars: &[(&str, &str)], expect: &str| {
        let read = context(vars).unwrap();
        assert_eq!(read.containers_dir, PathBuf::from(expect));
        let again = Context::from_vars(read.to_vars()).unwrap();
        assert_eq!(again.containers_dir, read.containers_dir);
    };
    check(&[start], "/charm/containers");
    check(&[start, ("JUJU_SIM_CONTAINERS", "/lab/c")], "/lab/c");
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let check = |vars: &[(&str, &str)], expect: &str| {
        assert_eq!(context(vars).unwrap_err().to_string(), expect, "{vars:?}");
    };
    let by_juju = "is not set; this program is started by a juju agent only";
    check(&[], &format!("JUJU_DISPATCH_PATH {by_juju}"));
    let broken = ("JUJU_DISPATCH_PATH", "hooks/x-relation-broken");
    check(&[broken], &format!("JUJU_RELATION_ID {by_juju}"));
    check(
        &[broken, ("JUJU_RELATION_ID", "x:y")],
        "cannot read JUJU_RELATION_ID",
    );
    check(
        &[("JUJU_DISPATCH_PATH", "hooks/secret-rotate")],
        &format!("JUJU_SECRET_ID {by_juju}"),
    );
    let start = ("JUJU_DISPATCH_PATH", "hooks/start");
    check(
        &[start, ("JUJU_UNIT_NAME", "meshy")],
        "cannot read JUJU_UNIT_NAME",
    );
    check(
        &[start, ("JUJU_UNIT_NAME", "")],
        &format!("JUJU_UNIT_NAME {by_juju}"),
    );
    check(
        &[start, ("JUJU_VERSION", "new")],
        r#"JUJU_VERSION holds "new""#,
    );
    let storage = ("JUJU_DISPATCH_PATH", "hooks/data-storage-attached");
    check(
        &[storage, ("JUJU_STORAGE_ID", "data")],
        "cannot read JUJU_STORAGE_ID",
    );
}

fn events() -> impl Strategy<Value = Event> {
    let name = || "[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5}){0,2}";
    let unit = || (name(), 0u32..2000).prop_map(|(app, n)| UnitName::of(app.parse().unwrap(), n));
    let relation = (
        name(),
        any::<u32>(),
        prop::sample::select(RelationKind::ALL.to_vec()),
        prop::option::of(name()),
        prop::option::of(unit()),
        prop::option::of(unit()),
    );
    let secret = (
        prop::sample::select(SecretKind::ALL.to_vec()),
        "secret:[0-9a-v]{20}",
        prop::option::of("[ -~é]{1,9}"),
        prop::option::of(any::<u32>()),
    );
    let storage = prop::sample::select(StorageKind::ALL.to_vec());
    let pebble = prop_oneof![
        Just(PebbleKind::Ready),
        ("[0-9]{1,4}", "[a-z.]{1,9}/x").prop_map(|(id, key)| PebbleKind::CustomNotice {
            id,
            kind: "custom".to_owned(),
            key
        }),
        name().prop_map(|check| PebbleKind::CheckFailed { check }),
        name().prop_map(|check| PebbleKind::CheckRecovered { check }),
    ];
    prop_oneof![
        prop::sample::select(PLAIN.to_vec()).prop_map(|(_, event)| event),
        relation.prop_map(|(endpoint, id, kind, app, remote_unit, departing_unit)| {
            Event::Relation(RelationEvent {
                endpoint: endpoint.parse().unwrap(),
                id: RelationId(id),
                kind,
                remote_app: app.map(|app| app.parse().unwrap()),
                remote_unit,
                departing_unit,
            })
        }),
        secret.prop_map(|(kind, id, label, revision)| {
            let id = SecretId::new(id).unwrap();
            Event::Secret(SecretEvent {
                kind,
                id,
                label,
                revision,
            })
        }),
        (storage, name(), 0u32..9, "/[a-z]{1,9}").prop_map(|(kind, name, index, location)| {
            let location = Some(location);
            Event::Storage(StorageEvent {
                kind,
                name,
                index,
                location,
                form: Some(StorageForm::Filesystem),
            })
        }),
        (name(), pebble)
            .prop_map(|(container, kind)| Event::Pebble(PebbleEvent { container, kind })),
        (name(), "[0-9]{1,5}").prop_map(|(name, id)| Event::Action(ActionCall { name, id })),
    ]
}

proptest! {
    #[test]
    fn what_an_agent_sets_is_read_back(
        event in events(),
        version in prop::option::of((0u32..9, 0u32..99, 0u32..99)),
        addresses in prop::collection::vec("[a-z0-9.]{1,12}:[0-9]{1,5}", 0..3),
        kubernetes in prop::option::of(("[a-z0-9.:]{1,20}", any::<u16>())),
        proxy in prop::option::of("http://[a-z]{1,9}"),
        debug: bool,
    ) {
        let unit = "meshy/7".parse().unwrap();
        let (model, uuid) = (ModelName::new("lab").unwrap(), ModelUuid::new("0d5f-2a").unwrap());
        let mut context = Context::new(event, unit, model, uuid);
        context.juju_version = version.map(|(a, b, c)| JujuVersion::release(a, b, c));
        context.api_addresses = addresses;
        context.kubernetes = kubernetes;
        context.proxies.https = proxy;
        context.debug = debug;
        prop_assert_eq!(Context::from_vars(context.to_vars()), Ok(context));
    }

    #[test]
    fn no_environment_makes_it_panic(
        path in "(hooks|actions)?/?[ -~é]{0,12}(-relation-|-storage-|-pebble-|secret-)?(changed|ready|broken|rotate|attached)?",
        id in any::<String>(),
        unit in any::<String>(),
        remote in any::<String>(),
    ) {
        let vars = [
            ("JUJU_DISPATCH_PATH", path.as_str()), ("JUJU_RELATION_ID", &id), ("JUJU_STORAGE_ID", &id),
            ("JUJU_SECRET_ID", &id), ("JUJU_UNIT_NAME", &unit), ("JUJU_REMOTE_UNIT", &remote),
            ("JUJU_REMOTE_APP", &remote), ("JUJU_VERSION", &id), ("JUJU_MODEL_NAME", &remote),
            ("JUJU_MODEL_UUID", &remote), ("CHARM_DIR", "/charm"),
        ];
        let read = Context::from_vars(vars);
        prop_assert!(read.is_err() || read.is_ok_and(|context| context.unit.to_string() == unit));
    }
}

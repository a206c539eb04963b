//! An Istio as istio-pilot makes it is moved to another namespace under constant load, taken back, and
//! moved again with the two charms in its place; the old charm's purge finds nothing, and the gateway
//! keeps its address.

#![allow(
    clippy::print_stdout,
    clippy::panic,
    reason = "the counts of requests are what this test is for"
)]

mod load;
mod people;
mod pilot;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use kube_apply::{Connect, Engine, Object, Query};
use mesh::control_plane::Settings;
use mesh::payload::Payload;
use migration::execute::{Clock as _, Limits, SystemClock};
use migration::plan::{GatewayChoice, NewOwner, Split, Strategy, Target};
use migration::{Executor, Progress, Request, Snapshot, Stand, plan, report};
use serde_json::Value;
use testbed::V1_31;

use load::Load;
use people::People;
use pilot::{APPS, GATE, Lab, OLD};
use watch::Watch;

/// Namespace of the new control plane.
const NEW: &str = "istio-lab";

/// What an executor tells, with the time that it took.
struct Told(Instant);

impl Progress for Told {
    fn say(&self, line: &str) {
        println!("{:>6.1} s  {line}", self.0.elapsed().as_secs_f64());
    }
}

async fn request(engine: &Engine) -> Result<(Snapshot, Request)> {
    let snapshot = Snapshot::read(engine, OLD, NEW, SystemClock.now()).await?;
    let payload = Payload::from_tar_gz(&std::fs::read(V1_31.payload()?)?)?;
    let settings = Settings {
        profile: "minimal".to_owned(),
        hub: Some(e2e::lab::HUB.to_owned()),
        tag: Some(V1_31.version.to_owned()),
        values: yaml::parse(testbed::pilot_values())?,
        kubernetes_version: Some(engine.server_version().await?),
        ..Settings::new(NEW.parse()?, "m1".parse()?)
    };
    let target = Target::of(&payload, &snapshot, OLD, &settings, Strategy::ZeroDowntime)?;
    Ok((snapshot, Request::moving(OLD, target)))
}

/// The same, and the two charms in place of the one, the gateway with its address included.
fn with_the_charms(wanted: Request) -> Request {
    Request {
        split: Some(Split {
            pilot: "istio-pilot".to_owned(),
            gateway: "istio-ingressgateway".to_owned(),
            daemon: "istio-k8s".to_owned(),
            integrator: "istio-integrator".to_owned(),
            authorizer: GATE.to_owned(),
            applications: APPS.map(str::to_owned).to_vec(),
        }),
        gateway: GatewayChoice::KeepAddress,
        owner: Some(NewOwner {
            labels: [("app.juju.is/application".to_owned(), "istio-k8s".to_owned())].into(),
            manager: "istio-k8s/control-plane".to_owned(),
        }),
        ..wanted
    }
}

/// Runs to the end, with people who do what they are asked for.
async fn go_with_people(
    people: &People,
    lab: &Lab,
    executor: &Executor<'_, Engine, SystemClock>,
) -> Result<()> {
    let told = Told(Instant::now());
    let mut asked = BTreeSet::new();
    loop {
        match executor.run(&Limits::default(), &told).await? {
            Stand::Done => return Ok(()),
            Stand::Waiting { step, commands, .. } if asked.insert(step.clone()) => {
                people.act(lab, &commands)?;
            }
            // Proxies read what people brought about a moment later.
            Stand::Waiting { why, .. } => {
                println!("{:>6.1} s  {why}", told.0.elapsed().as_secs_f64());
                ensure!(told.0.elapsed().as_secs() < 300, "{why}");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            other => bail!("{other:?}"),
        }
    }
}

/// Runs until it stands where it is to stand.
async fn go(executor: &Executor<'_, Engine, SystemClock>, until: Option<&str>) -> Result<Stand> {
    let told = Told(Instant::now());
    let limits = Limits {
        until: until.map(str::to_owned),
        ..Limits::default()
    };
    for _ in 0..3 {
        match executor.run(&limits, &told).await {
            Ok(stand) => return Ok(stand),
            Err(failure) => println!("stopped, goes on: {failure}: {failure:?}"),
        }
    }
    bail!("does not go on")
}

/// The custom objects, by name, as far as people wrote them.
async fn custom_objects(engine: &Engine) -> Result<BTreeMap<String, Value>> {
    let kinds = istio_api::kinds::TABLE.iter();
    let queries: Vec<Query> = kinds
        .filter(|row| migration::inventory::is_mesh_group(row.group))
        .map(|row| Query::list(row.group, row.kind))
        .collect();
    let read = engine.observe(&queries).await?;
    let told = |object: &Object| (object.id().to_string(), object.value()["spec"].clone());
    Ok(read.objects().map(told).collect())
}

#[test]
fn migration_of_a_pilot_cluster_loses_no_request_and_lets_nobody_in() -> Result<()> {
    let lab = Lab::up(&mut |step| println!("testbed: {step}"))?;
    let people = People::arrive(&lab)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime
        .block_on(story(&lab, &people))
        .inspect_err(|_| println!("refused: {:#?}", lab.refused()))
}

async fn story(lab: &Lab, people: &People) -> Result<()> {
    let engine = Engine::connect(&Connect::Kubeconfig(lab.kubeconfig()))?;
    let load = Load::start(lab)?;
    let watch = Watch::start(lab)?;
    let moved = there_back_and_there(lab, people, &engine, &load).await;
    let watched = watch.stop()?;
    let counts = load.stop()?;
    println!("{counts}\n{watched}");
    moved?;
    counts.nothing_failed()?;
    watched.nothing_failed()
}

async fn there_back_and_there(
    lab: &Lab,
    people: &People,
    engine: &Engine,
    load: &Load<'_>,
) -> Result<()> {
    let executor = Executor::new(engine, &SystemClock, "e2e");
    let before = custom_objects(engine).await?;
    let (snapshot, wanted) = request(engine).await?;
    let first = plan(&snapshot, &wanted).map_err(|r| anyhow::anyhow!(report::refusals(&r)))?;
    println!("{}", report::text(&first, None));
    executor.begin(&first, &snapshot).await?;
    let stand = go(&executor, Some("drain")).await?;
    ensure!(matches!(stand, Stand::Paused { .. }), "{stand:?}");
    let told = Told(Instant::now());
    let stand = executor.rollback(&Limits::default(), &told).await?;
    ensure!(stand == Stand::RolledBack, "{stand:?}");
    ensure!(
        custom_objects(engine).await? == before,
        "custom objects differ after the way back"
    );
    println!("there, drained, and back:\n{}", load.counts()?);

    let gateway = lab.gateway_service()?;
    let (snapshot, wanted) = request(engine).await?;
    let wanted = with_the_charms(wanted);
    let second = plan(&snapshot, &wanted).map_err(|r| anyhow::anyhow!(report::refusals(&r)))?;
    println!("{}", report::text(&second, None));
    executor.begin(&second, &snapshot).await?;
    go_with_people(people, lab, &executor).await?;
    for (what, why) in executor.verify(&second).await? {
        ensure!(why.is_none(), "{what}: {why:?}");
    }
    ensure!(lab.gateway_service()? == gateway, "another Service");

    let after = custom_objects(engine).await?;
    let gone: BTreeSet<&String> = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .collect();
    let handed_over: BTreeSet<String> = APPS
        .iter()
        .map(|app| format!("VirtualService {OLD}/{app}-web"))
        .chain([format!("EnvoyFilter {OLD}/istio-pilot-authn-filter")])
        .collect();
    let moved: BTreeSet<String> = ["AuthorizationPolicy", "PeerAuthentication"]
        .iter()
        .flat_map(|kind| ["apps", "blocked", "default"].map(|name| format!("{kind} {OLD}/{name}")))
        .collect();
    ensure!(
        handed_over.iter().all(|key| gone.contains(key)),
        "{gone:?} are gone"
    );
    for key in gone.into_iter().filter(|key| !handed_over.contains(*key)) {
        ensure!(moved.contains(key), "{key} is gone");
        let copy = key.replace(&format!(" {OLD}/"), &format!(" {NEW}/"));
        ensure!(
            after.get(&copy) == before.get(key),
            "{copy} is not what {key} was"
        );
    }
    for (key, spec) in &before {
        ensure!(
            after.get(key).is_none_or(|now| now == spec),
            "{key} has changed"
        );
    }
    Ok(())
}

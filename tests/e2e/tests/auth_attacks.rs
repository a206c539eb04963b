//! Every attempt to get past authorization, in every state that authorization can be in, on real
//! Envoy. None reaches the guarded application, and no claimed identity reaches any.

#![allow(
    clippy::print_stdout,
    reason = "a table of what was tried is the point"
)]

use anyhow::{Context as _, Result, ensure};
use e2e::Lab;
use e2e::attacks::{self, send};
use e2e::lab::{HUB, istio_config};
use e2e::story::{SESSION, Story};
use testbed::V1_31;

const MODEL: &str = "attack-lab";

fn deploy() -> Result<Story> {
    let lab = Lab::up(MODEL, &[V1_31])?;
    let release = format!("istio-release={}", V1_31.payload()?.display());
    let options = istio_config("istio-k8s", HUB, V1_31.version, "istio-ingress")?;
    let options = lab.write("istio-k8s.yaml", options)?;
    lab.juju.run(&[
        "deploy",
        &Lab::charm("istio-k8s"),
        "--trust",
        "--config",
        "namespace=istio-system",
        "--config",
        &options,
        "--resource",
        &release,
    ])?;
    lab.juju.wait_active(&["istio-k8s"])?;
    let story = Story::deploy(lab, MODEL, ("istio-ingress", "istio-ingressgateway"))?;
    let juju = &story.lab.juju;
    juju.run(&["deploy", &Lab::charm("echo-k8s"), "status", "--trust"])?;
    juju.run(&[
        "integrate",
        "status:ingress",
        "istio-integrator:ingress-unauthenticated",
    ])?;
    juju.wait_active(&["status", "istio-integrator"])?;
    Ok(story)
}

/// Whether an answer came from the application: it tells its pod's name, in its body and in a header.
fn is_from(answer: &[u8], app: &str) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    ["\"pod\":\"", "x-pod: "]
        .iter()
        .any(|mark| text.contains(&format!("{mark}{app}")))
}

/// The identities that an application says it received, under any spelling of the header.
fn identities_in(answer: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    ["\"kubeflow-userid\":[", "\"kubeflow_userid\":["]
        .iter()
        .flat_map(|mark| text.split(mark).skip(1))
        .map(|rest| rest.split(']').next().unwrap_or_default().to_owned())
        .collect()
}

/// Sends the whole table.
fn attempt(story: &Story, state: &str) -> Result<()> {
    let table = attacks::table(&format!("/{MODEL}-echo"), &format!("/{MODEL}-status"));
    let (mut passed, mut silent) = (Vec::new(), 0);
    let answers = attacks::send_all(story.gateway.address, &table)?;
    for (attack, answer) in table.iter().zip(answers) {
        let text = String::from_utf8_lossy(&answer.bytes);
        // Silence would prove nothing: a whole request has to be answered or hung up on.
        ensure!(
            answer.is_one() || !attack.whole,
            "{state}: {} is not answered",
            attack.name
        );
        silent += usize::from(answer.bytes.is_empty());
        if is_from(&answer.bytes, "echo") || is_from(&answer.bytes, "dashboard") {
            passed.push(format!("{}: {text}", attack.name));
        }
        if identities_in(&answer.bytes)
            .iter()
            .any(|who| who.contains("mallory"))
        {
            passed.push(format!("{}: the identity arrived: {text}", attack.name));
        }
    }
    println!(
        "{state}: {} attempts, {} passed, {silent} without a word",
        table.len(),
        passed.len()
    );
    ensure!(passed.is_empty(), "{state}:\n{}", passed.join("\n"));
    Ok(())
}

fn path(app: &str) -> String {
    format!("/{MODEL}-{app}/x")
}

/// Whoever has a session passes, with the identity that the authorizer gives and no other.
fn identities(story: &Story) -> Result<()> {
    let spellings = [
        "kubeflow-userid",
        "Kubeflow-Userid",
        "KUBEFLOW-USERID",
        "kubeflow_userid",
        "Kubeflow_UserID",
    ];
    for name in spellings {
        let answer = story
            .gateway
            .get(&path("echo"), &[SESSION, (name, "mallory")])?;
        ensure!(answer.status == 200, "{name}: {}", answer.status);
        ensure!(!answer.body.contains("mallory"), "{name}: {}", answer.body);
        ensure!(answer.body.contains("\"lab\""), "{name}: {}", answer.body);
    }
    Ok(())
}

#[test]
fn no_attempt_in_any_state_reaches_a_guarded_application() -> Result<()> {
    let story = deploy()?;
    let juju = &story.lab.juju;

    // The table means something: without authorization its first rows pass, with a body or without.
    story.gateway.expect(&path("echo"), &[], 200)?;
    let table = attacks::table(&format!("/{MODEL}-echo"), &format!("/{MODEL}-status"));
    for name in [
        format!("path {}", path("echo")),
        "method \"HEAD\"".to_owned(),
    ] {
        let plain = table.iter().find(|attack| attack.name == name);
        let answer = send(story.gateway.address, plain.context("a plain row")?)?;
        ensure!(is_from(&answer.bytes, "echo"), "{name} {answer:?}");
    }

    juju.run(&["config", "istio-integrator", "auth=required"])?;
    juju.wait_status("istio-integrator", "blocked")?;
    story.gateway.expect(&path("echo"), &[], 403)?;
    attempt(&story, "required, nobody offers it")?;

    story.guarded()?;
    story.gateway.expect(&path("echo"), &[SESSION], 200)?;
    story.gateway.expect(&path("status"), &[], 200)?;
    attempt(&story, "in force")?;
    identities(&story)?;

    story.scale("gate", 0)?;
    story.gateway.expect(&path("echo"), &[SESSION], 403)?;
    attempt(&story, "the provider is down")?;
    story.gateway.expect(&path("status"), &[], 200)?;
    story.scale("gate", 1)?;
    story.gateway.expect(&path("echo"), &[SESSION], 200)?;

    // Behind the charm's back, and before any hook can mend it.
    let filters = "/apis/networking.istio.io/v1alpha3/namespaces/istio-ingress/envoyfilters";
    let list = story.lab.api.get(filters)?;
    let name = list["items"][0]["metadata"]["name"]
        .as_str()
        .unwrap_or_default();
    story
        .lab
        .api
        .call(&http::Method::DELETE, &format!("{filters}/{name}"), None)?;
    story.gateway.expect(&path("echo"), &[SESSION], 404)?;
    attempt(&story, "somebody deleted the filter")?;

    juju.run(&["config", "istio-integrator", "auth=auto"])?;
    juju.run(&[
        "refresh",
        "istio-integrator",
        "--path",
        &Lab::charm("istio-integrator"),
    ])?;
    juju.wait_active(&["istio-integrator"])?;
    story.gateway.expect(&path("echo"), &[SESSION], 200)?;
    attempt(&story, "after a refresh")?;

    juju.run(&["remove-application", "--no-prompt", "gate"])?;
    juju.wait_status("istio-integrator", "blocked")?;
    story.gateway.expect(&path("echo"), &[SESSION], 403)?;
    attempt(&story, "the offer is gone")
}

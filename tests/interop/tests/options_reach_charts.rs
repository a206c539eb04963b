//! The options of istio-k8s reach the charts of every release: what they say is in the objects.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use mesh::control_plane::render::Gateway;
use mesh::control_plane::{Component, ControlPlane, Scale, Settings, control_plane};
use mesh::payload::Payload;
use serde_json::{Value, json};
use testbed::{Istio, tell};

fn settings() -> Result<Settings> {
    Ok(Settings::new("mesh-lab".parse()?, "canary".parse()?))
}

fn objects(plane: &ControlPlane) -> impl Iterator<Item = &Value> {
    let ControlPlane {
        crds,
        config,
        injector_config,
        istiod,
        cni,
        ztunnel,
        gateways,
        node_namespaces: _,
        webhook_sources: _,
    } = plane;
    let parts = [crds, config, injector_config, istiod, cni, ztunnel];
    let gateways = gateways.iter().flat_map(|Gateway { objects, .. }| objects);
    parts.into_iter().flatten().chain(gateways)
}

fn of_kind<'a>(plane: &'a ControlPlane, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects(plane).filter(move |object| object["kind"] == kind)
}

fn istiod(plane: &ControlPlane) -> Result<&Value> {
    plane.istiod.first().context("no istiod")
}

fn releases() -> Result<Vec<(String, Payload)>> {
    let mut out = Vec::new();
    for minor in ["1.26", "1.30", "1.31"] {
        let istio = Istio::find(minor)?;
        let payload = Payload::from_tar_gz(&std::fs::read(istio.payload()?)?)?;
        out.push((istio.version.to_owned(), payload));
    }
    Ok(out)
}

#[test]
fn every_option_of_a_control_plane_is_in_its_objects() -> Result<()> {
    let mut checked = 0;
    for (version, payload) in releases()? {
        let mut wanted = settings()?;
        wanted.hub = Some("registry.lab/mesh".to_owned());
        wanted.tag = Some("9.9.9".to_owned());
        wanted.variant = Some("debug".to_owned());
        wanted.image_pull_secrets = vec!["lab-pull".to_owned()];
        wanted.mesh_config = json!({"accessLogFile": "/dev/lab"});
        wanted.jwks_ca = Some("LAB CERTIFICATE".to_owned());
        wanted.scale = Scale::Fixed(3);
        let plane = control_plane(&payload, &wanted)?;
        let text = |object: &Value| object.to_string();
        let container = &istiod(&plane)?["spec"]["template"]["spec"]["containers"][0];
        ensure!(
            container["image"] == "registry.lab/mesh/pilot:9.9.9-debug",
            "{version}: {container}"
        );
        ensure!(
            istiod(&plane)?["spec"]["replicas"] == 3,
            "{version}: replicas"
        );
        ensure!(
            of_kind(&plane, "HorizontalPodAutoscaler").count() == 0,
            "{version}: scaler"
        );
        let account = |object: &Value| {
            object["metadata"]["name"] == "istiod-canary" && text(object).contains("lab-pull")
        };
        ensure!(
            of_kind(&plane, "ServiceAccount").any(account),
            "{version}: pull secret"
        );
        let config: Vec<String> = of_kind(&plane, "ConfigMap").map(text).collect();
        for word in ["/dev/lab", "LAB CERTIFICATE"] {
            ensure!(config.iter().any(|c| c.contains(word)), "{version}: {word}");
        }
        wanted.scale = Scale::Between { min: 2, max: 7 };
        let plane = control_plane(&payload, &wanted)?;
        let scaler = of_kind(&plane, "HorizontalPodAutoscaler")
            .next()
            .context("no scaler")?;
        ensure!(scaler["spec"]["minReplicas"] == 2 && scaler["spec"]["maxReplicas"] == 7);
        ensure!(
            istiod(&plane)?["spec"]["replicas"].is_null(),
            "{version}: replicas"
        );
        checked += 8;
    }
    tell(&format!(
        "{checked} options found in the objects of real charts"
    ));
    Ok(())
}

#[test]
fn components_are_exactly_those_that_were_chosen() -> Result<()> {
    for (version, payload) in releases()? {
        for profile in ["default", "ambient"] {
            for chosen in [
                BTreeSet::new(),
                BTreeSet::from([Component::Istiod]),
                BTreeSet::from([Component::Cni, Component::Ztunnel]),
                BTreeSet::from(Component::ALL),
            ] {
                let mut wanted = settings()?;
                wanted.profile = profile.to_owned();
                wanted.components = Some(chosen.clone());
                let plane = control_plane(&payload, &wanted)?;
                let got = [
                    (Component::Base, !plane.crds.is_empty()),
                    (Component::Istiod, !plane.istiod.is_empty()),
                    (Component::Cni, !plane.cni.is_empty()),
                    (Component::Ztunnel, !plane.ztunnel.is_empty()),
                ];
                for (component, there) in got {
                    ensure!(
                        there == chosen.contains(&component),
                        "{version} {profile} {chosen:?}: {component:?}"
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_platform_is_one_of_the_releases_and_reaches_the_node_agent() -> Result<()> {
    for (version, payload) in releases()? {
        let mut wanted = settings()?;
        wanted.profile = "ambient".to_owned();
        wanted.platform = Some("microk8s".to_owned());
        let plane = control_plane(&payload, &wanted)?;
        let agent = plane.cni.iter().map(Value::to_string).collect::<String>();
        ensure!(agent.contains("/var/snap/microk8s/"), "{version}: {agent}");
        wanted.platform = Some("moon".to_owned());
        let refusal = control_plane(&payload, &wanted)
            .err()
            .context("taken")?
            .to_string();
        ensure!(
            refusal.contains("\"moon\" is unknown") && refusal.contains("microk8s, minikube"),
            "{version}: {refusal}"
        );
    }
    Ok(())
}

#[test]
fn gateways_have_the_kind_revision_and_scale_they_were_given() -> Result<()> {
    for (version, payload) in releases()? {
        let mut wanted = settings()?;
        wanted.image_pull_secrets = vec!["lab-pull".to_owned()];
        wanted.gateways = yaml::parse_as(
            "- {name: out, namespace: out-lab, kind: egress, revision: prod, autoscaling: {min: 2, max: 4}}\n\
             - {name: edge, namespace: edge-lab, replicas: 2}\n",
        )?;
        let plane = control_plane(&payload, &wanted)?;
        let find = |kind: &str, name: &str| {
            let mut all = objects(&plane);
            all.find(|o| o["kind"] == kind && o["metadata"]["name"] == name)
                .with_context(|| format!("{version}: no {kind} {name}"))
        };
        let pod = &find("Deployment", "out")?["spec"]["template"];
        ensure!(
            pod["metadata"]["labels"]["istio"] == "out-egress",
            "{version}: {pod}"
        );
        ensure!(
            pod["metadata"]["labels"]["istio.io/rev"] == "prod",
            "{version}: {pod}"
        );
        ensure!(
            pod["spec"]["imagePullSecrets"] == json!([{"name": "lab-pull"}]),
            "{version}"
        );
        let service = &find("Service", "out")?["spec"];
        ensure!(service["type"] == "ClusterIP", "{version}: {service}");
        ensure!(
            service["selector"]["istio"] == "out-egress",
            "{version}: {service}"
        );
        ensure!(find("HorizontalPodAutoscaler", "out")?["spec"]["maxReplicas"] == 4);
        let edge = find("Deployment", "edge")?;
        ensure!(edge["spec"]["replicas"] == 2, "{version}: {edge}");
        let labels = &edge["spec"]["template"]["metadata"]["labels"];
        ensure!(
            labels["istio.io/rev"] == "canary" && labels["istio"] == "edge",
            "{version}"
        );
    }
    Ok(())
}

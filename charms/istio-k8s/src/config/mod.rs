//! The charm's options, checked before anything is touched.
//!
//! Every option of `charmcraft.yaml` is read here and nowhere else. One that is not in order is told
//! by its name, its value, what is allowed and the command that mends it.

mod gateways;
mod image;
mod scale;
#[cfg(test)]
mod tests;
mod text;
mod yaml_option;

use std::collections::BTreeSet;

use juju_charm::{Config, Problem};
use juju_hooks::AppName;
use mesh::control_plane::{Component, Settings};
use mesh::{Namespace, Revision};
use semver::Version;

use self::text::{Bad, one_of, text};

/// Namespaces that Kubernetes keeps for itself.
const RESERVED: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// Name and type of every option, as `charmcraft.yaml` has them.
pub const OPTIONS: [(&str, &str); 23] = [
    ("autoscale-max", "int"),
    ("autoscale-min", "int"),
    ("components", "string"),
    ("crd-policy", "string"),
    ("gateway-api-crds", "string"),
    ("gateways", "string"),
    ("hardened-mode", "boolean"),
    ("hub", "string"),
    ("image-pull-secrets", "string"),
    ("mesh-config", "string"),
    ("migrate-from", "string"),
    ("namespace", "string"),
    ("platform", "string"),
    ("profile", "string"),
    ("release-sha256", "string"),
    ("replicas", "int"),
    ("restart-proxies", "string"),
    ("revision", "string"),
    ("tag", "string"),
    ("upgrade-strategy", "string"),
    ("values", "string"),
    ("variant", "string"),
    ("version", "string"),
];

/// What becomes of Istio's custom resource definitions when the application goes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CrdPolicy {
    /// They stay, and with them everybody's configuration.
    #[default]
    Keep,
    /// They go, if the action `purge` was confirmed.
    Remove,
}

/// How another version comes in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum UpgradeStrategy {
    /// The running control plane is replaced.
    #[default]
    InPlace,
    /// The new one comes up beside the running one.
    Canary,
}

/// Who restarts proxies that are not on this control plane's version.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RestartProxies {
    /// A person, by the action `restart-proxies`.
    #[default]
    Manual,
    /// The charm, a few in each hook.
    Rolling,
}

/// What the charm does about Gateway API's custom resource definitions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum GatewayApiCrds {
    /// Nothing.
    #[default]
    Never,
    /// Installs them where there are none.
    IfAbsent,
    /// Installs them and keeps them at the payload's version or above.
    Manage,
}

/// All options, in order.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is rendered.
    pub settings: Settings,
    /// The version of Istio that is asked for; that of the attached release if none.
    pub version: Option<Version>,
    /// See [`CrdPolicy`].
    pub crd_policy: CrdPolicy,
    /// See [`UpgradeStrategy`].
    pub upgrade_strategy: UpgradeStrategy,
    /// See [`RestartProxies`].
    pub restart_proxies: RestartProxies,
    /// See [`GatewayApiCrds`].
    pub gateway_api_crds: GatewayApiCrds,
}

/// Reads every option of the application `app`. Without problems they are whole; with problems there
/// are none.
///
/// # Errors
/// One problem per bad option: its name, its value, what is allowed, and the command that takes it
/// back to its default.
pub fn options(config: &Config, app: &AppName) -> Result<Options, Vec<Problem>> {
    let mut bad = Vec::new();
    let options = read(config, &mut bad);
    options.ok_or_else(|| bad.into_iter().map(|bad| bad.problem(app)).collect())
}

/// The SHA-256s of which a payload must have one, in lower case; none accept any. An option that is not
/// in order accepts no payload: no digest is empty.
pub fn release_sha256(config: &Config) -> BTreeSet<String> {
    text::sha256(config).unwrap_or_else(|_| BTreeSet::from([String::new()]))
}

fn read(config: &Config, bad: &mut Vec<Bad>) -> Option<Options> {
    let namespace = keep(bad, namespace(config));
    let revision = keep(bad, revision(config));
    let values = keep(bad, yaml_option::values(config));
    let mesh_config = keep(bad, yaml_option::mesh_config(config));
    let gateways = keep(bad, gateways::gateways(config));
    if let (Some(namespace), Some(gateways)) = (&namespace, &gateways) {
        bad.extend(gateways::twins(namespace, gateways));
    }
    keep(bad, text::sha256(config));
    let version = keep(bad, version(config));
    let components = keep(bad, components(config));
    let platform = keep(bad, platform(config));
    let images = keep(bad, image::images(config));
    let scale = keep(bad, scale::scale(config));
    let crd_policy = keep(
        bad,
        one_of(
            config,
            "crd-policy",
            &[("keep", CrdPolicy::Keep), ("remove", CrdPolicy::Remove)],
        ),
    );
    let upgrade_strategy = keep(
        bad,
        one_of(
            config,
            "upgrade-strategy",
            &[
                ("in-place", UpgradeStrategy::InPlace),
                ("canary", UpgradeStrategy::Canary),
            ],
        ),
    );
    let restart_proxies = keep(
        bad,
        one_of(
            config,
            "restart-proxies",
            &[
                ("manual", RestartProxies::Manual),
                ("rolling", RestartProxies::Rolling),
            ],
        ),
    );
    let gateway_api_crds = keep(
        bad,
        one_of(
            config,
            "gateway-api-crds",
            &[
                ("never", GatewayApiCrds::Never),
                ("if-absent", GatewayApiCrds::IfAbsent),
                ("manage", GatewayApiCrds::Manage),
            ],
        ),
    );
    if !bad.is_empty() {
        return None;
    }
    let image::Images {
        hub,
        tag,
        variant,
        pull_secrets,
    } = images?;
    Some(Options {
        settings: Settings {
            profile: text(config, "profile").unwrap_or("default").to_owned(),
            components: components?,
            platform: platform?,
            hub,
            tag,
            variant,
            image_pull_secrets: pull_secrets,
            values: values?,
            mesh_config: mesh_config?,
            scale: scale?,
            hardened: config.bool("hardened-mode").unwrap_or_default(),
            gateways: gateways?,
            ..Settings::new(namespace?, revision?)
        },
        version: version?,
        crd_policy: crd_policy?,
        upgrade_strategy: upgrade_strategy?,
        restart_proxies: restart_proxies?,
        gateway_api_crds: gateway_api_crds?,
    })
}

fn namespace(config: &Config) -> Result<Namespace, Bad> {
    let text = text(config, "namespace").unwrap_or("istio-system");
    let name = text
        .parse()
        .map_err(|why| Bad::new("namespace", text, why))?;
    if RESERVED.contains(&text) {
        return Err(Bad::new("namespace", text, "is the cluster's own"));
    }
    stays_text("namespace", text)?;
    Ok(name)
}

fn revision(config: &Config) -> Result<Revision, Bad> {
    let text = text(config, "revision").unwrap_or_default();
    let revision = text
        .parse()
        .map_err(|why| Bad::new("revision", text, why))?;
    stays_text("revision", text)?;
    Ok(revision)
}

/// Charts write these names without quotes, where YAML makes truth values and numbers of some.
fn stays_text(option: &'static str, text: &str) -> Result<(), Bad> {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_number = text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok();
    if words.contains(&text) || is_number {
        return Err(Bad::new(option, text, "is no text in YAML"));
    }
    Ok(())
}

fn version(config: &Config) -> Result<Option<Version>, Bad> {
    let Some(text) = text(config, "version") else {
        return Ok(None);
    };
    Version::parse(text)
        .map(Some)
        .map_err(|_| Bad::new("version", text, "is no version such as 1.31.0"))
}

/// Components by name, separated by commas or blanks; `none` for none of them.
fn components(config: &Config) -> Result<Option<BTreeSet<Component>>, Bad> {
    let Some(text) = text(config, "components") else {
        return Ok(None);
    };
    if text == "none" {
        return Ok(Some(BTreeSet::new()));
    }
    text::list(text)
        .map(|name| {
            name.parse()
                .map_err(|()| Bad::allowed("components", name, "base, istiod, cni, ztunnel, none"))
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Its shape; whether the release knows it shows when it is rendered.
fn platform(config: &Config) -> Result<Option<String>, Bad> {
    let Some(text) = text(config, "platform") else {
        return Ok(None);
    };
    mesh::name::check_label(text).map_err(|why| Bad::new("platform", text, why))?;
    Ok(Some(text.to_owned()))
}

fn keep<T>(bad: &mut Vec<Bad>, result: Result<T, Bad>) -> Option<T> {
    result.map_err(|why| bad.push(why)).ok()
}

//! Where images come from.

use juju_charm::Config;
use mesh::name::check_label;

use super::text::{Bad, list, one_of, text};

/// Longest image tag; see the distribution specification.
const TAG_MAX: usize = 128;

/// Where images come from; what is unset is the release's own.
pub(super) struct Images {
    pub(super) hub: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) variant: Option<String>,
    pub(super) pull_secrets: Vec<String>,
}

pub(super) fn images(config: &Config) -> Result<Images, Bad> {
    let variants = &[
        ("", None),
        ("distroless", Some("distroless")),
        ("debug", Some("debug")),
    ];
    Ok(Images {
        hub: hub(config)?,
        tag: tag(config)?,
        variant: one_of(config, "variant", variants)?.map(str::to_owned),
        pull_secrets: pull_secrets(config)?,
    })
}

/// `registry.example:5000/path`, without scheme and without an image's name.
fn hub(config: &Config) -> Result<Option<String>, Bad> {
    let Some(text) = text(config, "hub") else {
        return Ok(None);
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:[]".contains(c);
    if text.contains("://") {
        return Err(Bad::new("hub", text, "has a scheme, leave it out"));
    }
    if let Some(odd) = text.chars().find(|c| !allowed(*c)) {
        return Err(Bad::new(
            "hub",
            text,
            format!("has {odd:?}, expected registry/path"),
        ));
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

fn tag(config: &Config) -> Result<Option<String>, Bad> {
    let Some(text) = text(config, "tag") else {
        return Ok(None);
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if text.len() > TAG_MAX || text.starts_with(['.', '-']) || !text.chars().all(allowed) {
        return Err(Bad::new("tag", text, "is no image tag such as 1.31.0"));
    }
    Ok(Some(text.to_owned()))
}

fn pull_secrets(config: &Config) -> Result<Vec<String>, Bad> {
    let names = text(config, "image-pull-secrets").unwrap_or_default();
    list(names)
        .map(|name| match name.split('.').try_for_each(check_label) {
            Ok(()) => Ok(name.to_owned()),
            Err(why) => Err(Bad::new("image-pull-secrets", name, why)),
        })
        .collect()
}

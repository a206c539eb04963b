//! The charm's options, checked.

use juju_charm::{Config, Problem};
use juju_hooks::SecretId;
use mesh::auth::AuthMode;
use mesh::name::check_label;
use mesh::policies::PolicyMode;

use crate::gateway_api::RouteApi;

/// Checked options. Empty texts are options left at their default.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    /// `istio-namespace`.
    pub istio_namespace: String,
    /// `revision`.
    pub revision: String,
    /// `gateway`.
    pub gateway: String,
    /// `gateway-name`.
    pub gateway_name: String,
    /// `route-api`.
    pub route_api: RouteApi,
    /// `external-hostname`.
    pub external_hostname: Option<String>,
    /// `auth`.
    pub auth: AuthMode,
    /// `tls-secret-id`.
    pub tls_secret: Option<SecretId>,
    /// `https-redirect`.
    pub https_redirect: bool,
    /// `workload-policies`.
    pub workload_policies: bool,
    /// `deny-by-default`.
    pub deny_by_default: bool,
    /// `policy-mode`.
    pub policy_mode: PolicyMode,
}

/// Reads the options. A bad one is told with the command that resets it; the option's default is
/// *not* taken instead, since a typing error must not open or move anything.
pub fn read(app: &str, config: &Config) -> Result<Settings, Problem> {
    let text = |option: &str| config.str(option).unwrap_or_default().trim().to_owned();
    let bad = |option: &str, why: String| {
        Problem::blocked(format!("option {option} {why}"))
            .with_hint(format!("juju config {app} --reset {option}"))
    };
    let settings = Settings {
        istio_namespace: text("istio-namespace"),
        revision: text("revision"),
        gateway: text("gateway"),
        gateway_name: text("gateway-name"),
        route_api: text("route-api")
            .parse()
            .map_err(|why| bad("route-api", why))?,
        external_hostname: Some(text("external-hostname")).filter(|host| !host.is_empty()),
        auth: auth(config).map_err(|why| bad("auth", why))?,
        tls_secret: config.secret("tls-secret-id"),
        https_redirect: config.bool("https-redirect").unwrap_or(true),
        workload_policies: config.bool("workload-policies").unwrap_or(false),
        deny_by_default: config.bool("deny-by-default").unwrap_or(false),
        policy_mode: text("policy-mode")
            .parse()
            .map_err(|why| bad("policy-mode", why))?,
    };
    for (option, value) in [
        ("istio-namespace", &settings.istio_namespace),
        ("revision", &settings.revision),
    ] {
        if !value.is_empty() {
            check_label(value).map_err(|why| bad(option, why.to_string()))?;
        }
    }
    let parts: Vec<&str> = settings.gateway.split('/').collect();
    if parts.len() > 2 {
        return Err(bad(
            "gateway",
            "must be a name or namespace/name".to_owned(),
        ));
    }
    for part in parts.iter().filter(|_| !settings.gateway.is_empty()) {
        host_name(part).map_err(|why| bad("gateway", why))?;
    }
    host_name(&settings.gateway_name).map_err(|why| bad("gateway-name", why))?;
    if let Some(host) = &settings.external_hostname {
        host_name(host).map_err(|why| bad("external-hostname", why))?;
    }
    Ok(settings)
}

/// The option `auth` alone, which counts also while others are bad.
///
/// # Errors
/// It has none of its values.
pub fn auth(config: &Config) -> Result<AuthMode, String> {
    config.str("auth").unwrap_or_default().trim().parse()
}

/// A name of RFC 1123 labels and dots, at most 253 characters.
fn host_name(text: &str) -> Result<(), String> {
    if text.len() > 253 {
        return Err("has more than 253 characters".to_owned());
    }
    text.split('.')
        .try_for_each(check_label)
        .map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn config(values: &Value) -> Config {
        let mut all = json!({"gateway-name": "front", "auth": "auto"});
        for (key, value) in values.as_object().unwrap() {
            all[key] = value.clone();
        }
        Config::new(all.as_object().unwrap().clone())
    }

    #[test]
    fn defaults_narrow_nothing() {
        let settings = read("meshy", &config(&json!({"external-hostname": " "}))).unwrap();
        let expect = Settings {
            gateway_name: "front".into(),
            https_redirect: true,
            ..Settings::default()
        };
        assert_eq!(settings, expect);
    }

    #[test]
    fn a_bad_option_is_named_with_the_command_that_resets_it() {
        let check = |values: Value, expect: &str| {
            assert_eq!(
                read("meshy", &config(&values)).unwrap_err().to_string(),
                expect
            );
        };
        check(
            json!({"auth": "off"}),
            "option auth must be auto, required or none, is \"off\"; run: juju config meshy --reset auth",
        );
        check(
            json!({"istio-namespace": "Istio"}),
            "option istio-namespace has 'I', only a-z, 0-9 and - are allowed; \
             run: juju config meshy --reset istio-namespace",
        );
        check(
            json!({"gateway": "a/b/c"}),
            "option gateway must be a name or namespace/name; run: juju config meshy --reset gateway",
        );
        check(
            json!({"gateway": "a/"}),
            "option gateway must not be empty; run: juju config meshy --reset gateway",
        );
        check(
            json!({"gateway-name": ""}),
            "option gateway-name must not be empty; run: juju config meshy --reset gateway-name",
        );
        check(
            json!({"external-hostname": "*.example.org"}),
            "option external-hostname has '*', only a-z, 0-9 and - are allowed; \
             run: juju config meshy --reset external-hostname",
        );
    }
}

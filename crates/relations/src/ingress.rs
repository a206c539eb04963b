//! Interface `ingress`, which two incompatible libraries claim.
//!
//! *Kubeflow's* (serialized-data-interface, versions 1 and 2): the requirer names a service, a path
//! prefix and what to rewrite it to; the provider answers with its versions only. *Traefik's* version
//! 2: every value JSON-encoded at the top level, a databag per unit; the provider chooses the path
//! and answers with the URL. One endpoint serves both: each library ignores the other's keys, so the
//! requirer's databag tells which one it speaks.

use juju_hooks::Databag;
use serde_json::{Map, Value};

use crate::{DecodeProblem, Result, json, sdi};

/// Versions of Kubeflow's dialect spoken.
pub const VERSIONS: &[u32] = &[1, 2];

/// Databag key of the provider's answer in traefik's dialect.
pub const REPLY_KEY: &str = "ingress";

/// A requirer's wish, in the dialect it speaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ingress {
    /// Kubeflow's dialect.
    Kubeflow(KubeflowIngress),
    /// Traefik's dialect, version 2.
    Traefik(TraefikIngress),
}

impl Ingress {
    /// Reads the requirer's databags: the application's and each unit's. `None` until it has said
    /// something in either dialect.
    pub fn decode<'a>(
        app: &Databag,
        units: impl IntoIterator<Item = &'a Databag>,
    ) -> Result<Option<Self>> {
        if sdi::is_spoken(app) {
            return Ok(KubeflowIngress::decode(app)?.map(Self::Kubeflow));
        }
        Ok(TraefikIngress::decode(app, units)?.map(Self::Traefik))
    }
}

/// A route of Kubeflow's dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KubeflowIngress {
    /// Name of the Service.
    pub service: String,
    /// Its port.
    pub port: u16,
    /// Its namespace; version 1 has none, and means the model of the provider.
    pub namespace: Option<String>,
    /// Path prefix to serve.
    pub prefix: String,
    /// What the prefix becomes at the service; absent: it stays.
    pub rewrite: Option<String>,
}

impl KubeflowIngress {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        let mut data = Map::new();
        let mut put = |key: &str, value: Value| data.insert(key.to_owned(), value);
        put("service", Value::from(self.service.as_str()));
        put("port", Value::from(self.port));
        put("prefix", Value::from(self.prefix.as_str()));
        if let Some(namespace) = &self.namespace {
            put("namespace", Value::from(namespace.as_str()));
        }
        if let Some(rewrite) = &self.rewrite {
            put("rewrite", Value::from(rewrite.as_str()));
        }
        sdi::envelope(if self.namespace.is_some() { &[2] } else { &[1] }, data)
    }

    /// Reads the requirer's application databag; `None` until it has sent versions and data.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some((version, data)) = sdi::document(bag, VERSIONS)? else {
            return Ok(None);
        };
        let namespace = sdi::text(&data, "namespace")?;
        if version >= 2 && namespace.is_none() {
            return Err(DecodeProblem::new(
                sdi::DATA_KEY,
                "field namespace is missing",
            ));
        }
        Ok(Some(Self {
            service: sdi::required_text(&data, "service")?,
            port: sdi::required_port(&data, "port")?,
            namespace,
            prefix: sdi::required_text(&data, "prefix")?,
            rewrite: sdi::text(&data, "rewrite")?,
        }))
    }
}

/// Protocol of a backend in traefik's dialect.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Scheme {
    /// Plain HTTP.
    #[default]
    Http,
    /// HTTP over TLS.
    Https,
    /// HTTP/2 without TLS.
    H2c,
}

impl Scheme {
    /// As written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::H2c => "h2c",
        }
    }
}

/// What one unit of a requirer says in traefik's dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnitAddress {
    /// Host name under which the unit is reached.
    pub host: String,
    /// Its IP address, where it is known.
    pub ip: Option<String>,
}

impl UnitAddress {
    /// The unit's databag.
    pub fn encode(&self) -> Databag {
        let mut bag = Databag::from([("host".to_owned(), json::string(&self.host))]);
        if let Some(ip) = &self.ip {
            bag.insert("ip".to_owned(), json::string(ip));
        }
        bag
    }

    /// Reads a unit's databag; `None` until the unit has written it.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let ip = json::text(bag, "ip")?;
        Ok(json::text(bag, "host")?.map(|host| Self { host, ip }))
    }
}

/// A wish of traefik's dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraefikIngress {
    /// The requirer's model.
    pub model: String,
    /// The requirer's application.
    pub name: String,
    /// Port of its Service.
    pub port: u16,
    /// Whether the path prefix is taken off before the request reaches it.
    pub strip_prefix: bool,
    /// Whether plain HTTP should be redirected to HTTPS.
    pub redirect_https: bool,
    /// How to speak to it.
    pub scheme: Scheme,
    /// The units that have written their databag, in unit order. None of them: not ready.
    pub units: Vec<UnitAddress>,
}

impl TraefikIngress {
    /// The requirer's application databag; defaults are left out, as its library does.
    pub fn encode(&self) -> Databag {
        let mut bag = Databag::from([
            ("model".to_owned(), json::string(&self.model)),
            ("name".to_owned(), json::string(&self.name)),
            ("port".to_owned(), self.port.to_string()),
        ]);
        if self.strip_prefix {
            bag.insert("strip-prefix".to_owned(), "true".to_owned());
        }
        if self.redirect_https {
            bag.insert("redirect-https".to_owned(), "true".to_owned());
        }
        if self.scheme != Scheme::Http {
            bag.insert("scheme".to_owned(), json::string(self.scheme.as_str()));
        }
        bag
    }

    /// Reads the requirer's databags; `None` until the application has written its own.
    pub fn decode<'a>(
        app: &Databag,
        units: impl IntoIterator<Item = &'a Databag>,
    ) -> Result<Option<Self>> {
        if !["model", "name", "port"]
            .iter()
            .any(|key| app.contains_key(*key))
        {
            return Ok(None);
        }
        let required =
            |key: &str| json::text(app, key)?.ok_or_else(|| DecodeProblem::new(key, "is missing"));
        let port =
            json::value(app, "port")?.ok_or_else(|| DecodeProblem::new("port", "is missing"))?;
        let scheme = match json::text(app, "scheme")?.as_deref() {
            None | Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            Some("h2c") => Scheme::H2c,
            Some(_) => return Err(DecodeProblem::new("scheme", "must be http, https or h2c")),
        };
        let units = units
            .into_iter()
            .map(UnitAddress::decode)
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Self {
            model: required("model")?,
            name: required("name")?,
            port: json::port("port", "", &port)?,
            strip_prefix: json::flag(app, "strip-prefix")?,
            redirect_https: json::flag(app, "redirect-https")?,
            scheme,
            units: units.into_iter().flatten().collect(),
        }))
    }
}

/// The provider's answer in traefik's dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraefikReply {
    /// Where the application is served.
    pub url: String,
}

impl TraefikReply {
    /// The provider's application databag entry.
    pub fn encode(&self) -> Databag {
        let reply = Map::from_iter([("url".to_owned(), Value::from(self.url.as_str()))]);
        Databag::from([(REPLY_KEY.to_owned(), Value::Object(reply).to_string())])
    }

    /// Reads the provider's application databag; `None` until it has published a URL.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some(reply) = json::value(bag, REPLY_KEY)? else {
            return Ok(None);
        };
        match reply.get("url") {
            Some(Value::String(url)) => Ok(Some(Self { url: url.clone() })),
            _ => Err(DecodeProblem::new(
                REPLY_KEY,
                "must be an object with a text url",
            )),
        }
    }
}

//! [`Context`] back to variables: what a Juju agent would set. Simulators start from this.

use std::collections::BTreeMap;
use std::path::Path;

use super::{CONTAINERS, Context, SIM_CONTAINERS};
use crate::event::{Event, PebbleKind};
use crate::storage::StorageForm;

impl Context {
    /// The variables an agent on Kubernetes sets for this dispatch, those it sets empty included.
    /// `PATH` and the shell's own variables are the runner's business.
    pub fn to_vars(&self) -> BTreeMap<String, String> {
        let mut vars = Vars(BTreeMap::new());
        let name = self.event.name();
        if self.event.action().is_some() {
            vars.set("JUJU_DISPATCH_PATH", format!("actions/{name}"));
            vars.set("JUJU_HOOK_NAME", "");
        } else {
            vars.set("JUJU_DISPATCH_PATH", format!("hooks/{name}"));
            vars.set("JUJU_HOOK_NAME", name);
        }
        vars.set("JUJU_UNIT_NAME", self.unit.to_string());
        vars.set("JUJU_MODEL_NAME", self.model_name.as_str());
        vars.set("JUJU_MODEL_UUID", self.model_uuid.as_str());
        vars.set("JUJU_CHARM_DIR", self.charm_dir.to_string_lossy());
        vars.set("CHARM_DIR", self.charm_dir.to_string_lossy());
        vars.maybe("JUJU_VERSION", self.juju_version.as_ref());
        vars.set("JUJU_API_ADDRESSES", self.api_addresses.join(" "));
        if let Some((host, port)) = &self.kubernetes {
            vars.set("KUBERNETES_SERVICE_HOST", host.as_str());
            vars.set("KUBERNETES_SERVICE_PORT", port.to_string());
            vars.set("KUBERNETES_SERVICE_PORT_HTTPS", port.to_string());
        }
        vars.or_empty("CLOUD_API_VERSION", self.cloud_api_version.as_ref());
        vars.maybe("JUJU_CONTEXT_ID", self.context_id.as_ref());
        vars.maybe("JUJU_AGENT_SOCKET_ADDRESS", self.agent_socket.as_ref());
        vars.maybe("JUJU_AGENT_SOCKET_NETWORK", self.agent_network.as_ref());
        vars.or_empty("JUJU_MACHINE_ID", self.machine_id.as_ref());
        vars.or_empty("JUJU_AVAILABILITY_ZONE", self.availability_zone.as_ref());
        vars.or_empty("JUJU_PRINCIPAL_UNIT", self.principal_unit.as_ref());
        vars.or_empty("JUJU_CHARM_HTTP_PROXY", self.proxies.http.as_ref());
        vars.or_empty("JUJU_CHARM_HTTPS_PROXY", self.proxies.https.as_ref());
        vars.or_empty("JUJU_CHARM_FTP_PROXY", self.proxies.ftp.as_ref());
        vars.or_empty("JUJU_CHARM_NO_PROXY", self.proxies.no.as_ref());
        if let Some(trace) = &self.trace {
            vars.set("JUJU_TRACE_ID", trace.trace_id.as_str());
            vars.set("JUJU_SPAN_ID", trace.span_id.as_str());
            vars.maybe("JUJU_TRACE_FLAGS", trace.flags.as_ref());
        }
        vars.maybe("JUJU_TARGET_BASE", self.target_base.as_ref());
        if self.containers_dir != Path::new(CONTAINERS) {
            vars.set(SIM_CONTAINERS, self.containers_dir.to_string_lossy());
        }
        if self.debug {
            vars.set("JUJU_DEBUG", "1");
        }
        vars.event(&self.event);
        vars.0
    }
}

struct Vars(BTreeMap<String, String>);

impl Vars {
    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn maybe(&mut self, name: &str, value: Option<&impl ToString>) {
        if let Some(value) = value {
            self.set(name, value.to_string());
        }
    }

    fn or_empty(&mut self, name: &str, value: Option<&impl ToString>) {
        self.set(name, value.map(ToString::to_string).unwrap_or_default());
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Relation(event) => {
                self.set("JUJU_RELATION", event.endpoint.as_str());
                self.set("JUJU_RELATION_ID", event.key().to_string());
                self.or_empty("JUJU_REMOTE_APP", event.remote_app.as_ref());
                self.or_empty("JUJU_REMOTE_UNIT", event.remote_unit.as_ref());
                self.maybe("JUJU_DEPARTING_UNIT", event.departing_unit.as_ref());
            }
            Event::Secret(event) => {
                self.set("JUJU_SECRET_ID", event.id.as_str());
                self.or_empty("JUJU_SECRET_LABEL", event.label.as_ref());
                self.maybe("JUJU_SECRET_REVISION", event.revision.as_ref());
            }
            Event::Storage(event) => {
                self.set("JUJU_STORAGE_ID", format!("{}/{}", event.name, event.index));
                self.maybe("JUJU_STORAGE_LOCATION", event.location.as_ref());
                self.maybe(
                    "JUJU_STORAGE_KIND",
                    event.form.map(StorageForm::as_str).as_ref(),
                );
            }
            Event::Pebble(event) => {
                self.set("JUJU_WORKLOAD_NAME", event.container.as_str());
                match &event.kind {
                    PebbleKind::Ready => {}
                    PebbleKind::CustomNotice { id, kind, key } => {
                        self.set("JUJU_NOTICE_ID", id.as_str());
                        self.set("JUJU_NOTICE_TYPE", kind.as_str());
                        self.set("JUJU_NOTICE_KEY", key.as_str());
                    }
                    PebbleKind::CheckFailed { check } | PebbleKind::CheckRecovered { check } => {
                        self.set("JUJU_PEBBLE_CHECK_NAME", check.as_str());
                    }
                }
            }
            Event::Action(call) => {
                self.set("JUJU_ACTION_NAME", call.name.as_str());
                self.set("JUJU_ACTION_UUID", call.id.as_str());
                self.set("JUJU_ACTION_TAG", format!("action-{}", call.id));
            }
            _ => {}
        }
    }
}

//! A stand-in for istiod where pods are played: the charm waits for what it does.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testbed::{Api, ControlPlane};

/// Does what istiod does to its webhooks, since no istiod runs in a played pod: puts a certificate
/// into each that has none, until it is dropped.
#[derive(Debug)]
pub struct PlayedIstiod {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PlayedIstiod {
    const PERIOD: Duration = Duration::from_millis(200);

    /// Begins; the cluster must serve.
    pub fn start(cluster: &ControlPlane) -> Result<Self> {
        let api = cluster.api()?;
        let bundle = ca(&api)?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(Self::PERIOD) == Err(RecvTimeoutError::Timeout) {
                // The charm may write at the same moment: the next turn sees it.
                let _ = patch_webhooks(&api, &bundle);
            }
        });
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for PlayedIstiod {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The cluster's own certificate in base64, which the API server itself encodes.
fn ca(api: &Api) -> Result<Value> {
    let root = api.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "played-istiod"},
        "stringData": {"ca": root["data"]["ca.crt"]},
    });
    api.apply("/api/v1/namespaces/default/secrets/played-istiod", &secret)?;
    let secret = api.get("/api/v1/namespaces/default/secrets/played-istiod")?;
    Ok(secret["data"]["ca"].clone())
}

fn patch_webhooks(api: &Api, bundle: &Value) -> Result<()> {
    for plural in [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let list = api.get(&path)?;
        for mut object in list["items"].as_array().into_iter().flatten().cloned() {
            let name = object["metadata"]["name"]
                .as_str()
                .context("a name")?
                .to_owned();
            let mut changed = false;
            for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
                let client = &mut webhook["clientConfig"];
                if client["caBundle"].as_str().unwrap_or_default().is_empty() {
                    client["caBundle"] = bundle.clone();
                    changed = true;
                }
            }
            if changed {
                api.call(&http::Method::PUT, &format!("{path}/{name}"), Some(&object))?;
            }
        }
    }
    Ok(())
}

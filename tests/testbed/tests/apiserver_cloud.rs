//! A real API server under a simulated Juju model: what an application may do with its credentials.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

use std::fs;

use juju_sim::cloud::Cloud;
use serde_json::json;
use testbed::{Api, Beside, ControlPlane, RealCloud};

/// A client with an application's credentials, as its charm would have.
fn client(cloud: &RealCloud, cluster: &ControlPlane, app: &str, trusted: bool) -> Api {
    let credentials = cloud.provision("lab", app, trusted).unwrap();
    let dir = cluster.kubeconfig().parent().unwrap().join(app);
    fs::create_dir_all(&dir).unwrap();
    let ca = dir.join("ca.crt");
    fs::write(&ca, &credentials.ca_crt).unwrap();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {
            "server": format!("https://{}:{}", credentials.host, credentials.port),
            "certificate-authority": ca}}],
        "users": [{"name": "u", "user": {"token": credentials.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    });
    let path = dir.join("kubeconfig");
    fs::write(&path, config.to_string()).unwrap();
    Api::connect(&path).unwrap()
}

#[test]
fn trust_gives_an_application_the_whole_cluster_and_takes_it_back() {
    let cluster = ControlPlane::up(Beside::Controllers, &mut |step| println!("{step}")).unwrap();
    let cloud = RealCloud::connect(cluster.kubeconfig()).unwrap();
    assert_eq!(cloud.api_version().as_deref(), Some("1.36.3"));

    let meshy = client(&cloud, &cluster, "meshy", false);
    meshy.get("/api/v1/namespaces/lab/pods").unwrap();
    meshy.get("/api/v1/namespaces/lab/configmaps").unwrap_err();
    meshy.get("/api/v1/namespaces").unwrap_err();

    cloud.set_trust("lab", "meshy", true).unwrap();
    meshy.get("/api/v1/namespaces").unwrap();
    meshy.get("/api/v1/namespaces/lab/configmaps").unwrap();

    cloud.set_trust("lab", "meshy", false).unwrap();
    meshy.get("/api/v1/namespaces").unwrap_err();
}

#[test]
fn nothing_is_left_of_an_application_and_of_a_model() {
    let cluster = ControlPlane::up(Beside::Controllers, &mut |step| println!("{step}")).unwrap();
    let cloud = RealCloud::connect(cluster.kubeconfig()).unwrap();
    let api = cluster.api().unwrap();
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    for app in ["meshy", "other"] {
        cloud.provision("lab", app, true).unwrap();
    }

    cloud.remove("lab", "meshy").unwrap();
    cloud.remove("lab", "meshy").unwrap();
    let account = "/api/v1/namespaces/lab/serviceaccounts";
    assert!(api.find(&format!("{account}/meshy")).unwrap().is_none());
    assert!(
        api.find(&format!("{bindings}/lab-meshy"))
            .unwrap()
            .is_none()
    );
    assert!(api.find(&format!("{account}/other")).unwrap().is_some());

    cloud.destroy_model("lab").unwrap();
    assert!(api.find("/api/v1/namespaces/lab").unwrap().is_none());
    assert!(
        api.find(&format!("{bindings}/lab-other"))
            .unwrap()
            .is_none()
    );
}

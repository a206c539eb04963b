//! Charms that speak to Kubernetes: credentials where a pod has them, and nowhere else.

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;

use juju_sim::DeployRequest;
use juju_sim::cloud::Cloud;
use juju_sim::cloud::CloudError;
use juju_sim::cloud::Credentials;

use crate::lab::Lab;
use crate::lab::options;

/// A cluster that writes down what it is asked and numbers its tokens.
#[derive(Default)]
struct Cluster {
    asked: Mutex<Vec<String>>,
}

impl Cluster {
    fn note(&self, text: String) -> usize {
        let mut asked = self.asked.lock().unwrap();
        asked.push(text);
        asked.len()
    }
}

impl Cloud for Cluster {
    fn provision(&self, model: &str, app: &str, trusted: bool) -> Result<Credentials, CloudError> {
        let number = self.note(format!("provision {model} {app} {trusted}"));
        Ok(Credentials {
            host: "192.0.2.1".into(),
            port: 6443,
            token: format!("token-{number}"),
            ca_crt: "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n".into(),
            namespace: model.into(),
        })
    }

    fn set_trust(&self, model: &str, app: &str, trusted: bool) -> Result<(), CloudError> {
        self.note(format!("trust {model} {app} {trusted}"));
        Ok(())
    }

    fn remove(&self, model: &str, app: &str) -> Result<(), CloudError> {
        self.note(format!("remove {model} {app}"));
        Ok(())
    }

    fn destroy_model(&self, model: &str) -> Result<(), CloudError> {
        self.note(format!("destroy {model}"));
        Ok(())
    }

    fn api_version(&self) -> Option<String> {
        Some("1.33.2".into())
    }

    fn rotates_tokens(&self) -> bool {
        true
    }
}

const SCRIPT: &str = r#"
tr '\0' '\n' < /proc/$$/environ > ../env
d=/var/run/secrets/kubernetes.io/serviceaccount
if [ -e $d/token ]; then
  echo "$(cat $d/token) $(cat $d/namespace)" >> ../seen
  cp $d/ca.crt ../ca.crt
fi
is-leader > ../leader
readlink /proc/$$/fd/0 > ../stdin
"#;

#[test]
fn a_charm_finds_a_fresh_service_account_in_each_hook() {
    let cluster = Arc::new(Cluster::default());
    let mut lab = Lab::with(options(), Arc::clone(&cluster) as _);
    let charm = lab.charm("meshy", "", SCRIPT);
    lab.model
        .deploy(&DeployRequest::new(charm).trusted())
        .unwrap();
    lab.model.advance().unwrap();
    let env = lab.wrote("meshy/0", "../env");
    for line in [
        "KUBERNETES_SERVICE_HOST=192.0.2.1\n",
        "KUBERNETES_SERVICE_PORT=6443\n",
        "KUBERNETES_SERVICE_PORT_HTTPS=6443\n",
        "CLOUD_API_VERSION=1.33.2\n",
    ] {
        assert!(env.contains(line), "{line} in {env}");
    }
    assert!(
        !env.contains("token-"),
        "the token is not in the environment"
    );
    assert_eq!(
        lab.wrote("meshy/0", "../leader"),
        "True\n",
        "the agent is reached from there"
    );
    let asked = cluster.asked.lock().unwrap().clone();
    assert_eq!(asked[0], "trust lab meshy true");
    assert_eq!(asked[1], "provision lab meshy true");
    let seen = lab.wrote("meshy/0", "../seen");
    if seen.is_empty() {
        // Without the right to mount, charms run without the files; that is all there is to check.
        return;
    }
    assert_eq!(seen, "token-2 lab\ntoken-3 lab\ntoken-4 lab\ntoken-5 lab\n");
    assert!(
        lab.wrote("meshy/0", "../ca.crt")
            .ends_with("abc\n-----END CERTIFICATE-----\n")
    );
    assert_eq!(lab.wrote("meshy/0", "../stdin"), "/dev/null\n");
    for extra in ["\nPWD=", "\nOLDPWD=", "\nSHLVL="] {
        assert!(!env.contains(extra), "{extra} in {env}");
    }
}

#[test]
fn nothing_of_the_credentials_is_left_behind() {
    let mut lab = Lab::with(options(), Arc::new(Cluster::default()));
    lab.deploy("meshy", "", "");
    let mut files = vec![lab.model.dir().to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() && !path.is_symlink() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else if !path.is_symlink() {
            let text = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains("token-"), "a token in {}", path.display());
        }
    }
    let account = Path::new("/var/run/secrets/kubernetes.io/serviceaccount/token");
    let token = std::fs::read_to_string(account).unwrap_or_default();
    assert!(
        !token.starts_with("token-"),
        "the mount is seen outside the charm"
    );
}

#[test]
fn the_cluster_hears_of_trust_removal_and_destruction() {
    let cluster = Arc::new(Cluster::default());
    let mut lab = Lab::with(options(), Arc::clone(&cluster) as _);
    lab.deploy("meshy", "", "");
    lab.model.trust("meshy", true).unwrap();
    lab.model.advance().unwrap();
    lab.model.remove_application("meshy", false).unwrap();
    lab.model.advance().unwrap();
    let dir = lab.model.dir().to_owned();
    lab.model.destroy().unwrap();
    assert!(!dir.exists());
    let asked = cluster.asked.lock().unwrap().clone();
    let told: Vec<&String> = asked
        .iter()
        .filter(|a| !a.starts_with("provision"))
        .collect();
    let expect = [
        "trust lab meshy false",
        "trust lab meshy true",
        "remove lab meshy",
        "destroy lab",
    ];
    assert_eq!(told, expect);
}

//! Command lines of the control plane's daemons, the same on a node and alone.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use crate::pki::Pki;
use crate::run;

/// One daemon: a name for its log, and its command line.
#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
}

/// Addresses and files that the daemons of one cluster share.
pub(crate) struct Plan<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) pki: &'a Pki,
    /// Address the API server listens on and tells others.
    pub(crate) bind: &'a str,
    pub(crate) advertise: &'a str,
    pub(crate) port: u16,
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) services: &'a str,
    pub(crate) pods: &'a str,
}

/// Issuer of service account tokens, also their default audience.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

impl Plan<'_> {
    pub(crate) fn etcd(&self, program: &Path) -> Daemon {
        let clients = format!("http://127.0.0.1:{}", self.etcd);
        let peers = format!("http://127.0.0.1:{}", self.etcd_peer);
        Daemon {
            name: "etcd",
            program: program.into(),
            args: vec![
                format!("--data-dir={}", self.dir.join("etcd").display()),
                format!("--listen-client-urls={clients}"),
                format!("--advertise-client-urls={clients}"),
                format!("--listen-peer-urls={peers}"),
                format!("--initial-advertise-peer-urls={peers}"),
                format!("--initial-cluster=default={peers}"),
                "--unsafe-no-fsync".into(),
            ],
        }
    }

    pub(crate) fn apiserver(&self, program: &Path) -> Daemon {
        let pki = self.pki;
        Daemon {
            name: "kube-apiserver",
            program: program.into(),
            args: vec![
                format!("--etcd-servers=http://127.0.0.1:{}", self.etcd),
                format!("--advertise-address={}", self.advertise),
                format!("--bind-address={}", self.bind),
                format!("--secure-port={}", self.port),
                format!("--tls-cert-file={}", pki.file("apiserver.crt")),
                format!("--tls-private-key-file={}", pki.file("apiserver.key")),
                format!("--client-ca-file={}", pki.file("ca.crt")),
                format!("--service-account-issuer={ISSUER}"),
                format!("--service-account-key-file={}", pki.file("sa.pub")),
                format!("--service-account-signing-key-file={}", pki.file("sa.key")),
                format!("--service-cluster-ip-range={}", self.services),
                "--allow-privileged=true".into(),
                "--authorization-mode=Node,RBAC".into(),
                "--enable-admission-plugins=NodeRestriction".into(),
                format!("--kubelet-client-certificate={}", pki.file("admin.crt")),
                format!("--kubelet-client-key={}", pki.file("admin.key")),
                "--kubelet-preferred-address-types=InternalIP".into(),
                format!(
                    "--requestheader-client-ca-file={}",
                    pki.file("front-proxy-ca.crt")
                ),
                "--requestheader-allowed-names=front-proxy-client".into(),
                "--requestheader-username-headers=X-Remote-User".into(),
                "--requestheader-group-headers=X-Remote-Group".into(),
                "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
                format!("--proxy-client-cert-file={}", pki.file("front-proxy.crt")),
                format!("--proxy-client-key-file={}", pki.file("front-proxy.key")),
                "--enable-aggregator-routing=true".into(),
                format!(
                    "--audit-policy-file={}",
                    self.dir.join("audit-policy.json").display()
                ),
                format!("--audit-log-path={}", audit_log(self.dir).display()),
                "--audit-log-mode=blocking".into(),
            ],
        }
    }

    pub(crate) fn controller_manager(&self, program: &Path, secure_port: u16) -> Daemon {
        let pki = self.pki;
        let mut args = self.client_args("controller-manager", secure_port);
        args.extend([
            format!("--service-account-private-key-file={}", pki.file("sa.key")),
            format!("--root-ca-file={}", pki.file("ca.crt")),
            format!("--cluster-signing-cert-file={}", pki.file("ca.crt")),
            format!("--cluster-signing-key-file={}", pki.file("ca.key")),
            "--use-service-account-credentials".into(),
            "--allocate-node-cidrs=false".into(),
            format!("--cluster-cidr={}", self.pods),
        ]);
        Daemon {
            name: "kube-controller-manager",
            program: program.into(),
            args,
        }
    }

    pub(crate) fn scheduler(&self, program: &Path, secure_port: u16) -> Daemon {
        let args = self.client_args("scheduler", secure_port);
        Daemon {
            name: "kube-scheduler",
            program: program.into(),
            args,
        }
    }

    fn client_args(&self, name: &str, secure_port: u16) -> Vec<String> {
        let kubeconfig = self.pki.file(&format!("{name}.kubeconfig"));
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--leader-elect=false".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={secure_port}"),
        ]
    }
}

/// Path of the audit log of a cluster in this directory.
pub(crate) fn audit_log(dir: &Path) -> PathBuf {
    dir.join("audit.log")
}

/// Every request once, when it is answered, without bodies.
pub(crate) fn write_audit_policy(dir: &Path) -> Result<()> {
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    });
    fs::write(dir.join("audit-policy.json"), policy.to_string())?;
    Ok(())
}

/// The end of each daemon's log, for the report of a start that failed.
pub(crate) fn log_tails(dir: &Path) -> String {
    let mut names: Vec<_> = fs::read_dir(dir.join("log"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    names.sort();
    let mut report = String::new();
    for path in names {
        let data = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&data);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(report, "--- {name}\n{}", run::tail(&text, 1500));
    }
    report
}

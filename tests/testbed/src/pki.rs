//! Certificates and kubeconfigs of one cluster, made with openssl and thrown away with it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use crate::run;

/// Lines openssl wants before it believes a command line.
const CONFIG: &str = "[req]\ndistinguished_name = name\n[name]\n";

/// Clients of the API server: file name and subject.
const CLIENTS: &[(&str, &str)] = &[
    ("admin", "/O=system:masters/CN=admin"),
    ("controller-manager", "/CN=system:kube-controller-manager"),
    ("scheduler", "/CN=system:kube-scheduler"),
    ("proxy", "/CN=system:kube-proxy"),
];

/// The files of one cluster.
#[derive(Debug, Clone)]
pub(crate) struct Pki {
    dir: PathBuf,
}

impl Pki {
    /// Makes everything. `url` is where clients find the API server, `names` (`IP:…`, `DNS:…`) what
    /// its certificate says, `node` the name and address of a kubelet.
    pub(crate) fn create(
        dir: &Path,
        url: &str,
        names: &[String],
        node: Option<(&str, &str)>,
    ) -> Result<Self> {
        fs::create_dir_all(dir)?;
        fs::write(dir.join("openssl.cnf"), CONFIG)?;
        let pki = Self { dir: dir.into() };
        pki.authority("ca")?;
        pki.authority("front-proxy-ca")?;
        pki.certificate("ca", "apiserver", "/CN=kube-apiserver", names)?;
        pki.certificate(
            "front-proxy-ca",
            "front-proxy",
            "/CN=front-proxy-client",
            &[],
        )?;
        pki.signing_key()?;
        for (name, subject) in CLIENTS {
            pki.certificate("ca", name, subject, &[])?;
            pki.kubeconfig(name, url)?;
        }
        if let Some((node, address)) = node {
            let names = [
                format!("DNS:{node}"),
                format!("IP:{address}"),
                "IP:127.0.0.1".into(),
            ];
            let subject = format!("/O=system:nodes/CN=system:node:{node}");
            pki.certificate("ca", "kubelet", &subject, &names)?;
            pki.kubeconfig("kubelet", url)?;
        }
        Ok(pki)
    }

    /// Path of a file, as text for a command line.
    pub(crate) fn file(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    fn authority(&self, name: &str) -> Result<()> {
        let mut command = self.request(name, &format!("/CN=testbed-{name}"));
        command.args(["-addext", "basicConstraints=critical,CA:TRUE"]);
        command.args(["-addext", "keyUsage=critical,keyCertSign,cRLSign"]);
        run::output(&mut command).map(|_| ())
    }

    fn certificate(&self, ca: &str, name: &str, subject: &str, names: &[String]) -> Result<()> {
        let mut command = self.request(name, subject);
        command.arg("-CA").arg(self.file(&format!("{ca}.crt")));
        command.arg("-CAkey").arg(self.file(&format!("{ca}.key")));
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        command.args(["-addext", "extendedKeyUsage=clientAuth,serverAuth"]);
        if !names.is_empty() {
            command.args(["-addext", &format!("subjectAltName={}", names.join(","))]);
        }
        run::output(&mut command).map(|_| ())
    }

    fn request(&self, name: &str, subject: &str) -> std::process::Command {
        let mut command = run::command("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "30", "-subj", subject]);
        command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.arg("-config").arg(self.file("openssl.cnf"));
        command
            .arg("-keyout")
            .arg(self.file(&format!("{name}.key")));
        command.arg("-out").arg(self.file(&format!("{name}.crt")));
        command
    }

    /// The key pair of service account tokens.
    fn signing_key(&self) -> Result<()> {
        let key = self.file("sa.key");
        let mut generate = run::command("openssl");
        generate.args([
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ]);
        run::output(generate.args(["-out", &key]))?;
        let mut public = run::command("openssl");
        public.args(["pkey", "-pubout", "-in", &key, "-out", &self.file("sa.pub")]);
        run::output(&mut public).map(|_| ())
    }

    /// Writes a kubeconfig as JSON, which is YAML too.
    fn kubeconfig(&self, name: &str, url: &str) -> Result<()> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": {
                "server": url, "certificate-authority": self.file("ca.crt")}}],
            "users": [{"name": name, "user": {
                "client-certificate": self.file(&format!("{name}.crt")),
                "client-key": self.file(&format!("{name}.key"))}}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": name}}],
            "current-context": "testbed",
        });
        fs::write(
            self.dir.join(format!("{name}.kubeconfig")),
            format!("{config:#}\n"),
        )?;
        Ok(())
    }
}

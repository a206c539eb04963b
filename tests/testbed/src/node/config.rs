//! Files that the node's daemons read, and their command lines.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::{NAME, Place, REGISTRY};
use crate::build::{Artifact, Built};
use crate::daemons::{self, Daemon, Plan};
use crate::image::PAUSE;
use crate::pki::Pki;

/// Writes everything `init.sh` starts from.
pub(super) fn write(dir: &Path, place: Place, built: &Built) -> Result<Pki> {
    let address = place.address();
    for name in [
        "log",
        "daemons",
        "kubelet",
        "images",
        "cni/conf",
        "certs.d/_default",
    ] {
        fs::create_dir_all(dir.join(name))?;
    }
    fs::write(dir.join("init.sh"), include_str!("init.sh"))?;
    let names = [
        "DNS:kubernetes".into(),
        "DNS:kubernetes.default".into(),
        "DNS:kubernetes.default.svc".into(),
        "DNS:kubernetes.default.svc.cluster.local".into(),
        "DNS:localhost".into(),
        format!("IP:{}", place.api_service()),
        "IP:127.0.0.1".into(),
        format!("IP:{address}"),
    ];
    let pki = Pki::create(
        &dir.join("pki"),
        &format!("https://{address}:6443"),
        &names,
        Some((NAME, address.as_str())),
    )?;
    daemons::write_audit_policy(dir)?;
    write_json(&dir.join("kubelet.json"), &kubelet(place, &pki))?;
    write_json(&dir.join("kube-proxy.json"), &kube_proxy(place, &pki))?;
    write_json(&dir.join("cni/conf/10-bridge.conflist"), &cni(place))?;
    fs::write(dir.join("containerd.toml"), containerd(dir))?;
    fs::write(dir.join("certs.d/_default/hosts.toml"), hosts())?;
    // A copy: Istio's CNI plugin installs itself beside the others.
    copy_plugins(&dir.join("cni/bin"))?;

    let plan = Plan {
        dir,
        pki: &pki,
        bind: "0.0.0.0",
        advertise: &address,
        port: 6443,
        etcd: 2379,
        etcd_peer: 2380,
        services: &place.services(),
        pods: &place.pods(),
    };
    let path = |artifact| built.path(artifact);
    for daemon in [
        plan.etcd(path(Artifact::Etcd)?),
        plan.apiserver(path(Artifact::KubeApiserver)?),
        plan.controller_manager(path(Artifact::KubeControllerManager)?, 10257),
        plan.scheduler(path(Artifact::KubeScheduler)?, 10259),
        Daemon {
            name: "containerd",
            program: "containerd".into(),
            args: vec![format!(
                "--config={}",
                dir.join("containerd.toml").display()
            )],
        },
        Daemon {
            name: "registry",
            program: path(Artifact::Testapp)?.into(),
            args: vec![
                "registry".into(),
                REGISTRY.into(),
                dir.join("images").to_string_lossy().into_owned(),
            ],
        },
        Daemon {
            name: "kubelet",
            program: path(Artifact::Kubelet)?.into(),
            args: vec![
                format!("--config={}", dir.join("kubelet.json").display()),
                format!("--kubeconfig={}", pki.file("kubelet.kubeconfig")),
                format!("--hostname-override={NAME}"),
                format!("--node-ip={address}"),
                "--root-dir=/var/lib/kubelet".into(),
            ],
        },
        Daemon {
            name: "kube-proxy",
            program: path(Artifact::KubeProxy)?.into(),
            args: vec![format!(
                "--config={}",
                dir.join("kube-proxy.json").display()
            )],
        },
    ] {
        let file = dir.join(format!("daemons/{}.sh", daemon.name));
        fs::write(file, script(&daemon))?;
    }
    Ok(pki)
}

/// A shell line that becomes the daemon.
fn script(daemon: &Daemon) -> String {
    let program = daemon.program.to_string_lossy();
    let words: Vec<_> = std::iter::once(program.as_ref())
        .chain(daemon.args.iter().map(String::as_str))
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
        .collect();
    format!("exec {}\n", words.join(" "))
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    fs::write(path, format!("{value:#}\n"))?;
    Ok(())
}

fn kubelet(place: Place, pki: &Pki) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": false,
        "failSwapOn": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", place.cgroup()),
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.file("kubelet.crt"),
        "tlsPrivateKeyFile": pki.file("kubelet.key"),
        "clusterDomain": "cluster.local",
        "clusterDNS": [place.dns()],
        "resolvConf": "/etc/resolv.conf",
        "registerNode": true,
        "podCIDR": place.pods(),
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        // The machine's disk is not the node's to save.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "serializeImagePulls": false,
        "syncFrequency": "10s",
        "fileCheckFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
        "shutdownGracePeriod": "0s",
        "protectKernelDefaults": false,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
    })
}

fn kube_proxy(place: Place, pki: &Pki) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": pki.file("proxy.kubeconfig")},
        "hostnameOverride": NAME,
        "mode": "nftables",
        "clusterCIDR": place.pods(),
        // Connection tracking is limited machine-wide, which a namespace may not change.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "nftables": {"minSyncPeriod": "0s"},
        "bindAddress": "0.0.0.0",
    })
}

fn cni(place: Place) -> Value {
    json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "ipMasq": true,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": place.pods()}]],
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": "/run/cni-ipam",
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]})
}

fn containerd(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        r#"version = 2
root = "{dir}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  # The machine may deny processes a better score than their parent's.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{dir}/cni/bin"
    conf_dir = "{dir}/cni/conf"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{dir}/certs.d"
"#
    )
}

/// Every image, whatever registry its name says, comes from the node's own.
fn hosts() -> String {
    format!(
        "server = \"http://{REGISTRY}\"\n[host.\"http://{REGISTRY}\"]\n  \
         capabilities = [\"pull\", \"resolve\"]\n"
    )
}

fn copy_plugins(target: &Path) -> Result<()> {
    fs::create_dir_all(target)?;
    for plugin in ["bridge", "host-local", "loopback", "portmap"] {
        fs::copy(
            Path::new(super::CNI_PLUGINS).join(plugin),
            target.join(plugin),
        )?;
    }
    Ok(())
}

//! The list of programs, with how each is made and how long that takes.

use std::fmt;

use super::go::Recipe;
use crate::istio::Istio;

/// A program of the test cluster. The order is the order of building: what others wait for, and what
/// shares its dependencies with the next, comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Artifact {
    /// The release payload's writer.
    Payload(Istio),
    /// etcd.
    Etcd,
    /// Helm, the judge of our chart rendering.
    Helm,
    /// Helm's own code, answering many questions in one process.
    HelmJudge,
    /// Kubernetes API server.
    KubeApiserver,
    /// Kubernetes controller manager.
    KubeControllerManager,
    /// Kubernetes scheduler.
    KubeScheduler,
    /// Kubelet.
    Kubelet,
    /// kube-proxy.
    KubeProxy,
    /// kubectl, where the machine's own is missing or of another version.
    Kubectl,
    /// `CoreDNS`.
    Coredns,
    /// Echo server, authorizer, client, pause and image registry.
    Testapp,
    /// Plays nodes and pods where there is no kubelet.
    Kwok,
    /// Upstream Envoy; from `PyPI`, not from Go.
    Envoy,
    /// istiod.
    PilotDiscovery(Istio),
    /// The agent beside every Envoy.
    PilotAgent(Istio),
    /// istioctl.
    Istioctl(Istio),
}

/// Version of Kubernetes that `go/kubernetes` pins.
pub(crate) const KUBERNETES: &str = "v1.36.3";
/// Version of Helm that `go/helm` pins.
pub(crate) const HELM: &str = "v4.3.2";

impl Artifact {
    /// Everything a run may need. Programs of releases long out of support come only with `full`.
    pub fn all(full: bool) -> Vec<Self> {
        use crate::istio::{ALL, V1_26, V1_31};
        let mut all = vec![
            Self::Etcd,
            Self::Helm,
            Self::HelmJudge,
            Self::KubeApiserver,
            Self::KubeControllerManager,
            Self::KubeScheduler,
            Self::Kubelet,
            Self::KubeProxy,
            Self::Kubectl,
            Self::Coredns,
            Self::Testapp,
            Self::Kwok,
            Self::Envoy,
            Self::Istioctl(V1_31),
        ];
        for istio in ALL {
            all.push(Self::Payload(*istio));
            if istio.programs && (full || *istio != V1_26) {
                all.extend([Self::PilotDiscovery(*istio), Self::PilotAgent(*istio)]);
            }
        }
        all.sort_unstable();
        all
    }

    /// Finds a program by its displayed name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all(true)
            .into_iter()
            .find(|artifact| artifact.to_string() == name)
    }

    /// Name of the program's file.
    pub(crate) const fn program(&self) -> &'static str {
        match self {
            Self::Payload(_) => "payload",
            Self::Etcd => "etcd",
            Self::Helm => "helm",
            Self::HelmJudge => "helm-judge",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::Kubectl => "kubectl",
            Self::Coredns => "coredns",
            Self::Testapp => "testapp",
            Self::Kwok => "kwok",
            Self::Envoy => "envoy",
            Self::PilotDiscovery(_) => "pilot-discovery",
            Self::PilotAgent(_) => "pilot-agent",
            Self::Istioctl(_) => "istioctl",
        }
    }

    /// Seconds of building in this order on two idle cores with an empty cache; measured.
    #[expect(clippy::match_same_arms, reason = "one line for each program")]
    pub(crate) const fn seconds(&self) -> u64 {
        match self {
            Self::Payload(_) => 3,
            Self::Etcd => 45,
            Self::Helm => 130,
            Self::HelmJudge => 2,
            Self::KubeApiserver => 300,
            Self::KubeControllerManager => 90,
            Self::KubeScheduler => 10,
            Self::Kubelet => 45,
            Self::KubeProxy => 12,
            Self::Kubectl => 25,
            Self::Coredns => 100,
            Self::Testapp => 5,
            Self::Kwok => 60,
            Self::Envoy => 10,
            Self::PilotDiscovery(_) => 380,
            Self::PilotAgent(_) => 15,
            Self::Istioctl(_) => 60,
        }
    }

    /// How the Go command makes it; [`None`] for what is not made of Go.
    pub(crate) fn recipe(&self) -> Option<Recipe> {
        let kubernetes = || {
            let package = "k8s.io/component-base/version";
            vec![
                format!("{package}.gitVersion={KUBERNETES}"),
                format!("{package}.gitMajor=1"),
                format!("{package}.gitMinor=36"),
                format!("{package}.gitTreeState=clean"),
            ]
        };
        let helm = || vec![format!("helm.sh/helm/v4/internal/version.version={HELM}")];
        let recipe = |module, package, stamps| Recipe {
            module,
            module_file: None,
            package,
            stamps,
        };
        Some(match self {
            Self::Envoy => return None,
            Self::Etcd => recipe("etcd", "go.etcd.io/etcd/server/v3", Vec::new()),
            Self::Helm => recipe("helm", "helm.sh/helm/v4/cmd/helm", helm()),
            Self::HelmJudge => recipe("helm", "./judge", helm()),
            Self::KubeApiserver => recipe(
                "kubernetes",
                "k8s.io/kubernetes/cmd/kube-apiserver",
                kubernetes(),
            ),
            Self::KubeControllerManager => recipe(
                "kubernetes",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
                kubernetes(),
            ),
            Self::KubeScheduler => recipe(
                "kubernetes",
                "k8s.io/kubernetes/cmd/kube-scheduler",
                kubernetes(),
            ),
            Self::Kubelet => recipe("kubernetes", "k8s.io/kubernetes/cmd/kubelet", kubernetes()),
            Self::KubeProxy => recipe(
                "kubernetes",
                "k8s.io/kubernetes/cmd/kube-proxy",
                kubernetes(),
            ),
            Self::Kubectl => recipe("kubernetes", "k8s.io/kubernetes/cmd/kubectl", kubernetes()),
            Self::Coredns => recipe("coredns", ".", Vec::new()),
            Self::Testapp => recipe("testapp", ".", Vec::new()),
            Self::Kwok => recipe("kwok", "sigs.k8s.io/kwok/cmd/kwok", Vec::new()),
            Self::Payload(istio) => of_istio(istio, "./payload", false),
            Self::PilotDiscovery(istio) => {
                of_istio(istio, "istio.io/istio/pilot/cmd/pilot-discovery", true)
            }
            Self::PilotAgent(istio) => {
                of_istio(istio, "istio.io/istio/pilot/cmd/pilot-agent", true)
            }
            Self::Istioctl(istio) => of_istio(istio, "istio.io/istio/istioctl/cmd/istioctl", true),
        })
    }
}

fn of_istio(istio: &Istio, package: &'static str, stamped: bool) -> Recipe {
    let version = istio.version;
    let variables = [
        ("buildVersion", version),
        ("buildGitRevision", istio.commit),
        ("buildStatus", "Clean"),
        ("buildTag", version),
        ("buildHub", "testbed"),
        ("buildOS", "linux"),
        ("buildArch", "amd64"),
    ];
    let stamps = variables
        .iter()
        .map(|(name, value)| format!("istio.io/istio/pkg/version.{name}={value}"))
        .collect();
    Recipe {
        module: "istio",
        module_file: Some(istio.module_file),
        package,
        stamps: if stamped { stamps } else { Vec::new() },
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())?;
        match self {
            Self::Payload(istio)
            | Self::PilotDiscovery(istio)
            | Self::PilotAgent(istio)
            | Self::Istioctl(istio) => write!(f, "-{}", istio.version),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_found_by_its_displayed_name() {
        for artifact in Artifact::all(true) {
            assert_eq!(Artifact::find(&artifact.to_string()), Some(artifact));
        }
        assert_eq!(Artifact::find("docker"), None);
    }

    #[test]
    fn the_old_release_is_built_only_when_asked_for() {
        let old = Artifact::PilotDiscovery(crate::istio::V1_26);
        assert!(!Artifact::all(false).contains(&old));
        assert!(Artifact::all(true).contains(&old));
    }

    #[test]
    fn the_pinned_versions_are_those_of_the_module_files() {
        for (module, version) in [("kubernetes", KUBERNETES), ("helm", HELM)] {
            let file = crate::paths::go_modules().join(module).join("go.mod");
            let text = std::fs::read_to_string(file).unwrap();
            assert!(
                text.contains(&format!(" {version}\n")),
                "{module} pins another version"
            );
        }
        for istio in crate::istio::ALL {
            let name = format!("istio/{}.mod", istio.module_file);
            let text = std::fs::read_to_string(crate::paths::go_modules().join(&name)).unwrap();
            assert!(
                text.contains(&format!("-{}\n", istio.commit)),
                "{name} pins another commit"
            );
        }
    }
}

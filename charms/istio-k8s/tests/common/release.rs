//! A release payload of charts that are small, made for these tests, and laid out as Istio's are.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

const CHARTS: &str = "manifests/charts";

const CRD: &str = r"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: virtualservices.networking.istio.io
  labels: {app: lab-crd}
spec:
  group: networking.istio.io
  scope: Namespaced
  names: {kind: VirtualService, plural: virtualservices}
  versions: [{name: v1, served: true, storage: true}]
";

const READER: &str = r"apiVersion: v1
kind: ServiceAccount
metadata:
  name: istio-reader-service-account
  namespace: {{ .Values.global.istioNamespace }}
";

const ROLE: &str = r#"{{- $name := printf "istiod%s" (ternary "" (printf "-%s" .Values.revision) (empty .Values.revision)) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}-{{ .Release.Namespace }}
rules:
- {apiGroups: ["networking.istio.io"], resources: ["*"], verbs: ["get"]}
"#;

/// As the istiod chart has it: what is under `pilot` wins.
const DESCOPE: &str = r"{{- $_ := mustMergeOverwrite $.Values (.Values.pilot | default dict) -}}
";

const PLATFORM: &str = "cni: {cniBinDir: /lab}\n";

const CONFIG: &str = r#"{{- $suffix := ternary "" (printf "-%s" .Values.revision) (empty .Values.revision) -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: istio{{ $suffix }}
data:
  extra: {{ .Values.jwksResolverExtraRootCA | default "" | quote }}
  mesh: |-
{{ toYaml .Values.meshConfig | indent 4 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: istio-sidecar-injector{{ $suffix }}
data:
  config: templates of {{ .Chart.AppVersion }}
---
apiVersion: v1
kind: Service
metadata:
  name: istiod{{ $suffix }}
spec:
  ports: [{name: https-dns, port: 15012}]
  selector: {app: istiod}
"#;

const DEPLOYMENT: &str = r#"{{- if gt (int .Values.replicaCount) 9 }}{{ fail "replicaCount: at most 9" }}{{ end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: istiod{{ with .Values.revision }}-{{ . }}{{ end }}
  labels:
    app: istiod
    istio.io/rev: {{ .Values.revision | default "default" }}
    app.kubernetes.io/version: {{ .Chart.AppVersion }}
    operator.istio.io/component: Pilot
    install.operator.istio.io/owning-resource: unknown
spec:
  replicas: {{ .Values.replicaCount }}
  selector:
    matchLabels: {app: istiod}
  template:
    metadata:
      labels: {app: istiod, profile: {{ .Values.profile | default "none" }}}
    spec:
      containers:
      - name: discovery
        image: {{ .Values.global.hub }}/pilot:{{ .Values.global.tag }}
"#;

const OWN_WEBHOOK: &str = r"apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: from-the-chart
webhooks: []
";

const GATEWAY: &str = r#"{{- if gt (int .Values.replicaCount) 9 }}{{ fail "replicaCount: at most 9" }}{{ end -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Values.name }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Values.name }}
spec:
  type: {{ .Values.service.type }}
  ports: [{name: http2, port: 80}]
  selector: {app: {{ .Values.name }}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Values.name }}
  labels: {app: {{ .Values.name }}, operator.istio.io/component: IngressGateways}
spec:
  selector:
    matchLabels: {app: {{ .Values.name }}}
  template:
    metadata:
      labels: {app: {{ .Values.name }}, istio.io/rev: {{ .Values.revision | default "default" }}}
    spec:
      containers: [{name: istio-proxy, image: auto}]
"#;

const NODE_AGENT: &str = r"apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .Chart.Name }}
spec:
  selector:
    matchLabels: {app: {{ .Chart.Name }}}
  template:
    metadata:
      labels: {app: {{ .Chart.Name }}}
    spec:
      containers: [{name: main, image: {{ .Values.global.hub }}/{{ .Chart.Name }}}]
";

const DEFAULT_PROFILE: &str = r"spec:
  components:
    base: {enabled: true}
    pilot: {enabled: true}
    ingressGateways: [{name: of-the-profile, enabled: true}]
";

const AMBIENT_PROFILE: &str = r"spec:
  components:
    cni: {enabled: true, namespace: node-lab}
    ztunnel: {enabled: true}
  values:
    profile: ambient
";

/// The files of a payload, by path.
pub struct Release(BTreeMap<String, String>);

impl Release {
    /// A complete payload of one version.
    pub fn of(version: &str) -> Self {
        let mut release = Self(BTreeMap::new());
        let global = format!(
            "global: {{hub: registry.example, tag: {version}, istioNamespace: unset, \
             configValidation: true}}\nrevision: ''\n"
        );
        for (chart, values, templates) in [
            (
                "base",
                "",
                &[("crds.yaml", CRD), ("reader.yaml", READER)][..],
            ),
            (
                "istio-control/istio-discovery",
                "replicaCount: 1\nmeshConfig: {rootNamespace: null}\nrevisionTags: []\n",
                &[
                    ("role.yaml", ROLE),
                    ("config.yaml", CONFIG),
                    ("deployment.yaml", DEPLOYMENT),
                    ("webhook.yaml", OWN_WEBHOOK),
                    ("zz.yaml", DESCOPE),
                ],
            ),
            ("default", "", &[]),
            (
                "gateway",
                "name: unset\nreplicaCount: 1\nservice: {type: unset}\n",
                &[("gateway.yaml", GATEWAY)],
            ),
            ("istio-cni", "", &[("agent.yaml", NODE_AGENT)]),
            ("ztunnel", "", &[("agent.yaml", NODE_AGENT)]),
        ] {
            let dir = format!("{CHARTS}/{chart}");
            let name = chart.rsplit('/').next().unwrap_or(chart);
            release = release
                .with(
                    &format!("{dir}/Chart.yaml"),
                    &format!(
                        "apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: {version}\n"
                    ),
                )
                .with(&format!("{dir}/values.yaml"), &format!("{global}{values}"));
            for (file, text) in templates {
                release = release.with(&format!("{dir}/templates/{file}"), text);
            }
        }
        let istiod = format!("{CHARTS}/istio-control/istio-discovery");
        release
            .with(
                &format!("{istiod}/files/profile-platform-k3d.yaml"),
                PLATFORM,
            )
            .with(
                &format!("{istiod}/files/profile-platform-gke.yaml"),
                PLATFORM,
            )
            .with("manifests/profiles/default.yaml", DEFAULT_PROFILE)
            .with("manifests/profiles/ambient.yaml", AMBIENT_PROFILE)
            .with("manifests/profiles/minimal.yaml", "spec: {}\n")
    }

    /// With another text of a file, or a file more.
    pub fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.to_owned(), text.to_owned());
        self
    }

    /// With other words in a file.
    pub fn edit(mut self, path: &str, from: &str, to: &str) -> Self {
        let text = self.0.get_mut(path).expect("a file");
        assert!(text.contains(from), "{path} does not say {from:?}");
        *text = text.replace(from, to);
        self
    }

    /// Without the files under a directory.
    pub fn without(mut self, dir: &str) -> Self {
        self.0.retain(|path, _| !path.starts_with(dir));
        self
    }

    /// Writes the payload as a release archive has it.
    pub fn write(&self, dir: &Path) -> PathBuf {
        let path = dir.join("istio-release.tar.gz");
        let file = File::create(&path).expect("a file");
        let mut archive = Builder::new(GzEncoder::new(file, Compression::fast()));
        for (path, text) in &self.0 {
            let mut header = Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(text.len() as u64);
            let path = format!("istio-lab/{path}");
            archive
                .append_data(&mut header, path, text.as_bytes())
                .expect("an entry");
        }
        archive
            .into_inner()
            .expect("an archive")
            .finish()
            .expect("an end");
        path
    }
}

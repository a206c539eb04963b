//! Values that lead through the branches of the charts. None of this knows what a chart answers; Helm does.

use super::Case;
use serde_json::{Map, Value, json};

const PROFILES: [&str; 11] = [
    "ambient",
    "default",
    "demo",
    "empty",
    "minimal",
    "openshift",
    "openshift-ambient",
    "preview",
    "remote",
    "stable",
    "no-such-profile",
];
const PLATFORMS: [&str; 7] = [
    "gke",
    "k3d",
    "k3s",
    "microk8s",
    "minikube",
    "openshift",
    "no-such-platform",
];
const COMPATIBILITY: [&str; 12] = [
    "1.19", "1.20", "1.21", "1.22", "1.23", "1.24", "1.25", "1.26", "1.27", "1.28", "1.29", "1.30",
];

/// Profiles, platforms and compatibility versions, and how they combine; they are files of every chart.
pub fn profiles() -> Vec<Case> {
    let mut cases = vec![Case::new("defaults", json!({}))];
    for profile in PROFILES {
        cases.push(Case::new(
            format!("profile {profile}"),
            json!({"profile": profile}),
        ));
        cases.push(Case::new(
            format!("global profile {profile}"),
            json!({"global": {"profile": profile}}),
        ));
    }
    for platform in PLATFORMS {
        cases.push(Case::new(
            format!("platform {platform}"),
            json!({"platform": platform}),
        ));
        for profile in ["ambient", "remote"] {
            cases.push(Case::new(
                format!("{profile} on {platform}"),
                json!({"profile": profile, "global": {"platform": platform}}),
            ));
        }
    }
    for version in COMPATIBILITY {
        cases.push(Case::new(
            format!("compatible with {version}"),
            json!({"compatibilityVersion": version}),
        ));
    }
    cases.push(Case::new(
        "everything at once, and the user wins",
        json!({
            "profile": "ambient", "compatibilityVersion": "1.25", "global": {"platform": "openshift", "variant": "debug"},
            "meshConfig": {"defaultConfig": {"proxyMetadata": {"ISTIO_META_ENABLE_HBONE": "false"}}},
            "cniBinDir": "/elsewhere",
        }),
    ));
    cases
}

/// Ways to call a chart that do not depend on its values.
pub fn circumstances() -> Vec<Case> {
    let mut upgrade = Case::new("an upgrade", json!({}));
    upgrade.is_upgrade = true;
    let mut elsewhere = Case::new(
        "another namespace",
        json!({"global": {"istioNamespace": "istio-lab"}, "revision": "one"}),
    );
    "istio-lab".clone_into(&mut elsewhere.namespace);
    let mut split = Case::new(
        "a namespace that is not the control plane's",
        json!({"service": {"type": "ClusterIP"}}),
    );
    "1234".clone_into(&mut split.namespace);
    let mut gke = Case::new("a GKE cluster", json!({}));
    "v1.33.4-gke.1245000".clone_into(&mut gke.kube_version);
    vec![upgrade, elsewhere, split, gke]
}

/// Values for one chart.
pub fn of_chart(chart: &str) -> Vec<Case> {
    let text = match chart {
        "base" => BASE,
        "default" => DEFAULT,
        "gateway" => GATEWAY,
        "gateways/istio-egress" | "gateways/istio-ingress" => GATEWAYS,
        "istio-cni" => CNI,
        "istio-control/istio-discovery" => DISCOVERY,
        "ztunnel" => ZTUNNEL,
        _ => "",
    };
    let egress = chart == "gateways/istio-egress";
    let text = if egress {
        text.replace("istio-ingressgateway", "istio-egressgateway")
    } else {
        text.to_owned()
    };
    let mut cases = Vec::new();
    for block in text.split("\n---\n") {
        let values = helm_chart::values::parse_file(block)
            .unwrap_or_else(|e| Value::String(format!("{e}: {block}")));
        let name = block
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        cases.push(Case::new(name.trim_start_matches(['#', ' ']), values));
    }
    cases
}

/// Each default of a chart replaced, one at a time, by something else of its type.
pub fn one_by_one(defaults: &Value) -> Vec<Case> {
    let root = defaults
        .get("_internal_defaults_do_not_set")
        .unwrap_or(defaults);
    let mut leaves = Vec::new();
    collect(root, &mut Vec::new(), &mut leaves);
    leaves
        .into_iter()
        .map(|(path, value)| {
            let name = format!("{} = {value}", path.join("."));
            let nested = path.iter().rev().fold(value, |value, key| {
                let mut map = Map::new();
                map.insert(key.clone(), value);
                Value::Object(map)
            });
            Case::new(name, nested)
        })
        .collect()
}

fn collect(value: &Value, path: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                path.push(key.clone());
                collect(value, path, leaves);
                path.pop();
            }
            leaves.push((path.clone(), Value::Null));
        }
        leaf => {
            let others = match leaf {
                Value::Bool(b) => vec![json!(!b)],
                Value::Number(n) => vec![
                    json!(n.as_f64().unwrap_or(0.0) + 1.0),
                    json!(1_000_000),
                    json!(0.5),
                ],
                Value::String(_) => vec![json!("other"), json!("yes: no"), json!(null)],
                Value::Array(_) => vec![json!(["other"]), json!([{"name": "other", "value": "v"}])],
                Value::Object(_) | Value::Null => {
                    vec![json!({"other": "value", "n": 7}), json!("other")]
                }
            };
            leaves.extend(others.into_iter().map(|other| (path.clone(), other)));
        }
    }
}

const BASE: &str = r#"
# no default revision
defaultRevision: ""
---
# a named default revision, validation with a CA
defaultRevision: one
base: {validationCABundle: Q0E=}
---
# validation elsewhere
base: {validationURL: "https://example.com/validate", validationFailurePolicy: Fail}
---
# no CRDs
base: {enableCRDTemplates: false, enableIstioConfigCRDs: false}
---
# some CRDs
base: {excludedCRDs: [wasmplugins.extensions.istio.io, sidecars.networking.istio.io]}
---
# stable policy
experimental: {stableValidationPolicy: true}
---
# stable policy for a revision, pull secrets, cluster scope
defaultRevision: two
experimental: {stableValidationPolicy: true}
global: {imagePullSecrets: [one, two], resourceScope: cluster}
---
# namespace scope
global: {resourceScope: namespace, istioNamespace: elsewhere}
---
# no reader
global: {enableReaderRBAC: false}
---
# another reader
global: {readerServiceAccount: {name: reader}}
---
# a numeric namespace
global: {istioNamespace: "1234"}
---
# nothing where a map belongs
base: null
"#;

const DEFAULT: &str = r#"
# a revision
revision: one
---
# remote injection
istiodRemote: {injectionURL: "https://example.com/inject", injectionPath: /elsewhere}
revisionTags: [prod]
---
# named tags and an owner
ownerName: someone
revision: "1"
sidecarInjectorWebhook: {enableNamespacesByDefault: true}
base: {validationURL: "https://example.com/validate"}
---
# no injection webhook
istiodRemote: {enabledLocalInjectorIstiod: true, enabled: true, injectionCABundle: Q0E=}
"#;

const DISCOVERY: &str = r#"
# a revision with tags
revision: canary
revisionTags: [default, prod, "1"]
ownerName: someone
---
# revision tags in every namespace
revisionTags: [default]
sidecarInjectorWebhook: {enableNamespacesByDefault: true, reinvocationPolicy: IfNeeded}
sidecarInjectorWebhookAnnotations: {example.com/a: "on", example.com/b: "1"}
---
# injection selectors and templates
sidecarInjectorWebhook:
  neverInjectSelector: [{matchExpressions: [{key: never, operator: Exists}]}]
  alwaysInjectSelector: [{matchExpressions: [{key: always, operator: Exists}]}]
  injectedAnnotations: {example.com/injected: "yes"}
  templates: {custom: "spec:\n  containers:\n  - name: x\n    image: <y> & \"z\"\n"}
  defaultTemplates: [sidecar, custom]
  rewriteAppHTTPProbe: false
---
# replicas without autoscaling, so a disruption budget
autoscaleEnabled: false
replicaCount: 3
pdb: {minAvailable: 2, unhealthyPodEvictionPolicy: AlwaysAllow}
---
# autoscaling with behaviour and memory
autoscaleMin: 2
autoscaleMax: 9
autoscaleBehavior: {scaleUp: {stabilizationWindowSeconds: 30}}
memory: {targetAverageUtilization: 70}
cpu: {targetAverageUtilization: 55}
---
# a disruption budget by maximum
autoscaleMin: 3
pdb: {minAvailable: null, maxUnavailable: 25%}
---
# no disruption budget
global: {defaultPodDisruptionBudget: {enabled: false}}
autoscaleMin: 2
---
# network policy
global: {networkPolicy: {enabled: true}}
revision: one
---
# gateway classes
gatewayClasses:
  istio:
    deployment: {spec: {replicas: 3, template: {spec: {containers: [{name: istio-proxy, resources: {limits: {cpu: 1500m}}}]}}}}
    service: {spec: {type: ClusterIP}}
  istio-waypoint: {horizontalPodAutoscaler: {spec: {minReplicas: 2, maxReplicas: 1000000}}}
---
# stable policy
experimental: {stableValidationPolicy: true}
revision: one
---
# cluster scope
global: {resourceScope: cluster}
revisionTags: [a]
---
# namespace scope
global: {resourceScope: namespace}
revisionTags: [a]
gatewayClasses: {istio: {service: {spec: {type: NodePort}}}}
---
# no webhooks, no injector map, no validation, no mesh map
global: {operatorManageWebhooks: true, omitSidecarInjectorConfigMap: true, configValidation: false}
configMap: false
---
# mesh config
meshConfig:
  accessLogFile: /dev/stdout
  rootNamespace: istio-lab
  trustDomain: lab.example.com
  trustDomainAliases: [old.example.com]
  discoverySelectors: [{matchLabels: {mesh: "yes"}}, {matchExpressions: [{key: x, operator: In, values: [a, "1"]}]}]
  extensionProviders:
  - name: oidc
    envoyExtAuthzHttp:
      service: auth.istio-lab.svc.cluster.local
      port: 4180
      timeout: 1.5s
      includeRequestHeadersInCheck: [authorization, cookie, "x-*"]
      headersToUpstreamOnAllow: ["x-user: & <b>", 'quoted "text"']
  defaultProviders: {accessLogging: [envoy], metrics: [prometheus]}
  defaultConfig:
    holdApplicationUntilProxyStarts: true
    concurrency: 2
    tracing: {sampling: 12.5, zipkin: {address: "zipkin:9411"}}
    proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true", NUMBER: "0755"}
  enableTracing: true
  pathNormalization: {normalization: DECODE_AND_MERGE_SLASHES}
---
# multiple networks
global:
  meshID: mesh1
  network: network1
  multiCluster: {clusterName: cluster1, enabled: true}
  meshNetworks:
    network1: {endpoints: [{fromRegistry: cluster1}], gateways: [{address: 192.0.2.1, port: 15443}]}
    network2: {endpoints: [{fromCidr: "192.0.2.0/24"}], gateways: [{registryServiceName: gw.istio-lab.svc, port: 15443}]}
---
# tracers
global: {proxy: {tracer: lightstep}, tracer: {lightstep: {address: "ls:443", accessToken: secret}}}
pilot: {traceSampling: 100}
---
# tracer zipkin
global: {proxy: {tracer: zipkin}, tracer: {zipkin: {address: "z:9411"}}}
traceSampling: 0.5
---
# tracer datadog
global: {proxy: {tracer: datadog}, tracer: {datadog: {address: "d:8126"}}}
---
# tracer stackdriver
global: {proxy: {tracer: stackdriver}, tracer: {stackdriver: {debug: true, maxNumberOfAnnotations: 100}}}
---
# environment
env:
  PILOT_ENABLE_AMBIENT: "true"
  PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER: "false"
  EXTERNAL_CA: ISTIOD_RA_KUBERNETES_API
  NUMBER: 5
  BIG: 10000000
  FLAG: true
  ISTIOD_CUSTOM_HOST: "istiod.old.svc,istiod-one.old.svc"
  COMPLIANCE_POLICY: fips-140-2
envVarFrom: [{name: FROM, valueFrom: {secretKeyRef: {name: s, key: k}}}]
---
# cluster trust bundles, as a boolean
env: {ENABLE_CLUSTER_TRUST_BUNDLE_API: true}
---
# cluster trust bundles, as a string: refused
env: {ENABLE_CLUSTER_TRUST_BUNDLE_API: "true"}
---
# multi-cluster services
env: {ENABLE_MCS_SERVICE_DISCOVERY: "true", ENABLE_MCS_HOST: "true", MCS_API_GROUP: example.com, MCS_API_VERSION: v1}
global: {istiod: {enableAnalysis: true}, externalIstiod: true, configCluster: true}
---
# remote control plane by address
global: {remotePilotAddress: 192.0.2.7}
istiodRemote: {enabled: true, injectionURL: "https://192.0.2.7:15017/inject", injectionCABundle: Q0E=}
---
# remote control plane by name
global: {remotePilotAddress: istiod.example.com, configCluster: true}
istiodRemote: {enabled: true}
profile: remote
---
# remote with a local injector
istiodRemote: {enabled: true, enabledLocalInjectorIstiod: true}
global: {remotePilotAddress: 192.0.2.7, omitSidecarInjectorConfigMap: false}
configMap: false
---
# images
hub: registry.example.com
tag: 1.2
image: registry.example.com/own/pilot:3
variant: distroless
global: {hub: other.example.com, tag: "7", variant: debug, imagePullPolicy: Always, imagePullSecrets: [a, b], proxy: {image: own-proxy, variant: distroless}}
---
# image by name
image: pilot
hub: ""
tag: latest
variant: debug
---
# pods
podAnnotations: {example.com/a: "true"}
podLabels: {team: "7"}
deploymentLabels: {dl: "1"}
deploymentAnnotations: {da: "x: y"}
serviceAnnotations: {sa: v}
serviceAccountAnnotations: {saa: v}
nodeSelector: {disk: ssd}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}
tolerations: [{key: k, operator: Equal, value: v, effect: NoSchedule}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
volumes: [{name: v, emptyDir: {}}]
volumeMounts: [{name: v, mountPath: /v}]
initContainers: [{name: init, image: "i:{{ .Values.global.tag }}"}]
extraContainerArgs: [--one, "--two=2"]
seccompProfile: {type: RuntimeDefault}
resources: {limits: {cpu: 2}, requests: {cpu: 1, memory: 1Gi}}
terminationMessagePolicy: FallbackToLogsOnError
global: {priorityClassName: system-cluster-critical, defaultNodeSelector: {n: s}, defaultTolerations: [{operator: Exists}], arch: {amd64: 1}}
---
# addresses
ipFamilyPolicy: RequireDualStack
ipFamilies: [IPv6, IPv4]
trafficDistribution: PreferClose
---
# certificates
jwksResolverExtraRootCA: "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"
crlConfigMapName: crl
global: {pilotCertProvider: k8s.io/example.com/signer, certSigners: [example.com/signer, "*.other"], caAddress: "ca:443", caName: GkeWorkloadCertificate, mountMtlsCerts: true, trustBundleName: bundle, sds: {token: {aud: other}}}
---
# a certificate provider the notes refuse
global: {pilotCertProvider: kubernetes}
---
# proxies
global:
  logAsJson: true
  logging: {level: "all:debug"}
  proxy:
    autoInject: disabled
    clusterDomain: lab.local
    privileged: true
    enableCoreDump: true
    readinessFailureThreshold: 30
    startupProbe: {enabled: false}
    lifecycle: {preStop: {exec: {command: [sleep, "5"]}}}
    resources: {requests: {cpu: 1, memory: 1Gi}}
    outlierLogPath: /dev/stdout
    seccompProfile: {type: RuntimeDefault}
  proxy_init: {forceApplyIptables: true}
  sts: {servicePort: 5000}
  waypoint: {resources: {limits: {cpu: 4}}, affinity: {a: b}, tolerations: [{operator: Exists}]}
gateways: {securityContext: {runAsUser: 0}, seccompProfile: {type: Unconfined}}
---
# CNI and taints
cni: {enabled: true, provider: multus}
taint: {enabled: true, namespace: kube-system, name: other/not-ready}
trustedZtunnelNamespace: kube-system
trustedZtunnelName: zt
---
# telemetry off
telemetry: {enabled: false}
keepaliveMaxServerConnectionAge: 5m
---
# telemetry of another kind
telemetry: {enabled: true, v2: {enabled: false}}
rollingMaxSurge: 1
rollingMaxUnavailable: 0
---
# validation
base: {validationURL: "https://example.com", validationCABundle: Q0E=, validationFailurePolicy: Ignore}
---
# legacy shape
pilot: {env: {A: b}, autoscaleEnabled: false, image: x, resources: {requests: {cpu: 1}}, cni: {enabled: true}}
---
# null in many places
meshConfig: null
env: null
resources: null
global: {proxy: null}
---
# a list where a map belongs
global: [1]
---
# a revision named default
revision: default
---
# a very long revision
revision: this-is-a-rather-long-revision-name-that-goes-on-and-on-for-ever
---
# native nftables, policies
global: {nativeNftables: true, networkPolicy: {enabled: true}, enableReaderRBAC: false, readerServiceAccount: {name: r}}
"#;

const GATEWAY: &str = r#"
# a name and labels
name: meshy-gateway
labels: {app: meshy, istio: lab, "istio.io/dataplane-mode": none, extra: "1"}
annotations: {a: b}
---
# a name starting with the product's
name: istio-meshy
revision: one
ownerName: someone
---
# a daemon set
kind: DaemonSet
strategy: {type: RollingUpdate}
minReadySeconds: 5
---
# replicas
autoscaling: {enabled: false}
replicaCount: 3
podDisruptionBudget: {minAvailable: 1, maxUnavailable: null, unhealthyPodEvictionPolicy: AlwaysAllow}
---
# autoscaling
autoscaling: {minReplicas: 2, maxReplicas: 4, targetCPUUtilizationPercentage: 50, targetMemoryUtilizationPercentage: 60, autoscaleBehavior: {scaleDown: {selectPolicy: Disabled}}}
---
# no service
service: {type: None}
rbac: {enabled: false}
serviceAccount: {create: false}
---
# a service with everything
service:
  type: LoadBalancer
  annotations: {x: "yes"}
  loadBalancerIP: 192.0.2.9
  loadBalancerSourceRanges: [192.0.2.0/24]
  externalTrafficPolicy: Local
  internalTrafficPolicy: Local
  healthCheckNodePort: 31000
  externalIPs: [192.0.2.10]
  loadBalancerClass: lab
  allocateLoadBalancerNodePorts: false
  clusterIP: 192.0.2.11
  ipFamilyPolicy: PreferDualStack
  ipFamilies: [IPv4]
  selectorLabels: {pick: me}
  ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP, nodePort: 30080}]
---
# a network gateway
networkGateway: network2
networkGatewayPorts: {status-port: {port: 15021, targetPort: 15021}, tls: {port: 443, targetPort: 15443, nodePort: 30443}}
---
# pods
env: {A: b, N: "1"}
envVarFrom: [{name: F, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
imagePullSecrets: [{name: s}]
imagePullPolicy: Always
volumes: [{name: v, emptyDir: {}}]
volumeMounts: [{name: v, mountPath: /v}]
initContainers: [{name: i, image: x}]
additionalContainers: [{name: c, image: "y"}]
nodeSelector: {a: b}
tolerations: [{operator: Exists}]
topologySpreadConstraints: [{maxSkew: 1}]
affinity: {podAntiAffinity: {}}
priorityClassName: high
terminationGracePeriodSeconds: 5
lifecycle: {preStop: {sleep: {seconds: 5}}}
readinessProbe: {httpGet: {path: /x, port: 15021}}
securityContext: {runAsUser: 0}
containerSecurityContext: {privileged: true}
podAnnotations: {"inject.istio.io/templates": custom, other: "true"}
dnsPolicy: None
dnsConfig: {nameservers: [192.0.2.53]}
resources: null
serviceAccount: {name: own, annotations: {a: b}}
---
# network policy
global: {networkPolicy: {enabled: true}, imagePullSecrets: [x]}
platform: openshift
---
# values the schema does not know
noSuchValue: 1
---
# values of the wrong type
replicaCount: many
---
# an unknown kind
kind: StatefulSet
---
# a wrong type deep down
service: {ports: 5}
"#;

const GATEWAYS: &str = r#"
# a name and labels
gateways: {istio-ingressgateway: {name: meshy, labels: {app: meshy, istio: lab}}}
---
# no autoscaling
gateways: {istio-ingressgateway: {autoscaleEnabled: false, replicaCount: 2, rollingMaxSurge: 1, rollingMaxUnavailable: 0}}
---
# autoscaling by memory
gateways: {istio-ingressgateway: {autoscaleMin: 2, autoscaleMax: 3, memory: {targetAverageUtilization: 60}, cpu: {targetAverageUtilization: 20}}}
---
# a service with everything
gateways:
  istio-ingressgateway:
    type: NodePort
    loadBalancerIP: 192.0.2.9
    loadBalancerSourceRanges: [192.0.2.0/24]
    externalTrafficPolicy: Local
    serviceAnnotations: {a: "1"}
    ipFamilyPolicy: PreferDualStack
    ipFamilies: [IPv4, IPv6]
    ports: [{port: 80, targetPort: 8080, name: http2, protocol: TCP, nodePort: 30080}]
    ingressPorts: [{port: 81, targetPort: 81, name: extra}]
    externalIPs: [192.0.2.10]
---
# a service of its own
gateways: {istio-ingressgateway: {customService: true}}
---
# pods
gateways:
  istio-ingressgateway:
    env: {A: b}
    podAnnotations: {p: "true"}
    nodeSelector: {disk: ssd}
    tolerations: [{key: k, operator: Exists}]
    podAntiAffinityLabelSelector: [{key: app, operator: In, values: "a,b", topologyKey: zone}]
    podAntiAffinityTermLabelSelector: [{key: app, operator: NotIn, values: c, topologyKey: zone}]
    secretVolumes: [{name: s, secretName: t, mountPath: /s}]
    configVolumes: [{name: c, configMapName: d, mountPath: /c}]
    additionalContainers: [{name: x, image: "y"}]
    serviceAccount: {annotations: {a: b}}
    runAsRoot: true
    resources: {limits: {cpu: 1}}
---
# injected
gateways: {istio-ingressgateway: {injectionTemplate: gateway, type: ClusterIP}}
---
# global
global:
  caAddress: "ca:443"
  defaultNodeSelector: {n: s}
  defaultTolerations: [{operator: Exists}]
  arch: {amd64: 2, arm64: 0}
  imagePullPolicy: Always
  imagePullSecrets: [a]
  logAsJson: true
  logging: {level: "all:debug"}
  meshID: mesh1
  mountMtlsCerts: true
  multiCluster: {clusterName: c1}
  network: n1
  pilotCertProvider: kubernetes
  priorityClassName: high
  proxy: {componentLogLevel: "http:debug", logLevel: debug, clusterDomain: lab.local, variant: distroless}
  sts: {servicePort: 5000}
  sds: {token: {aud: other}}
  networkPolicy: {enabled: true}
  trustBundleName: bundle
  hub: registry.example.com
  tag: 7
  variant: debug
revision: one
ownerName: someone
meshConfig: {enablePrometheusMerge: false, trustDomain: lab, defaultConfig: {proxyMetadata: {A: b}, tracing: {tlsSettings: {caCertificates: x}}}}
---
# another certificate provider
global: {pilotCertProvider: none, defaultPodDisruptionBudget: {enabled: false}}
---
# signed by the cluster
global: {pilotCertProvider: k8s.io/signer}
---
# a whole image
global: {proxy: {image: registry.example.com/own/proxy:1}}
"#;

const CNI: &str = r#"
# ambient
ambient: {enabled: true, dnsCapture: false, ipv6: false, reconcileIptablesOnStartup: false, shareHostNetworkNamespace: true, enableAmbientDetectionRetry: true}
---
# ambient selectors
profile: ambient
ambient: {enablementSelectors: [{podSelector: {matchLabels: {a: "on"}}}]}
env: {AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY: true}
---
# images
hub: registry.example.com
tag: 1.5
image: registry.example.com/own/cni:2
variant: distroless
pullPolicy: Always
global: {imagePullSecrets: [a], hub: h, tag: t, variant: debug, imagePullPolicy: Never}
---
# multus
provider: multus
chained: false
cniConfFileName: a.conf
cniBinDir: /b
cniConfDir: /c
cniNetnsDir: /d
---
# its own configuration
istioOwnedCNIConfig: true
istioOwnedCNIConfigFileName: own.conflist
---
# its own configuration in ambient
istioOwnedCNIConfig: true
ambient: {enabled: true}
---
# repair
repair: {enabled: true, labelPods: true, deletePods: true, repairPods: false, initContainerName: x, brokenPodLabelKey: k, brokenPodLabelValue: v}
---
# no repair
repair: {enabled: false}
---
# pods
podAnnotations: {a: "1"}
podLabels: {b: "2"}
daemonSetLabels: {c: "3"}
affinity: {nodeAffinity: {}}
tolerations: []
updateStrategy: {type: OnDelete}
terminationGracePeriodSeconds: 1
seccompProfile: {type: RuntimeDefault}
seLinuxOptions: {type: spc_t}
useAppArmorAnnotation: false
resources: {}
resourceQuotas: {enabled: true, pods: 1000000}
excludeNamespaces: [kube-system, "1"]
env: {A: "b", N: 5}
logging: {level: "cni:debug"}
global: {logAsJson: true, logging: {level: warn}, nativeNftables: true, networkPolicy: {enabled: true}}
revision: one
ownerName: someone
---
# cluster scope
global: {resourceScope: cluster}
---
# namespace scope
global: {resourceScope: namespace}
---
# a CNI nested as in older values
cni: {hub: x, ambient: {enabled: true}}
---
# no privileges
privileged: false
"#;

const ZTUNNEL: &str = r#"
# a name
resourceName: zt
revision: one
ownerName: someone
---
# named by the release
resourceName: ""
labels: {a: "1"}
annotations: {b: "2"}
podLabels: {c: "3"}
podAnnotations: {d: "4"}
---
# images
hub: registry.example.com
tag: 1.5
image: registry.example.com/own/zt:2
variant: debug
imagePullPolicy: Always
imagePullSecrets: [a, {name: b}]
---
# nested global
global: {hub: h, tag: t, variant: distroless, imagePullSecrets: [a], imagePullPolicy: Never, logAsJson: true, logging: {level: debug}, networkPolicy: {enabled: true}, platform: gke}
---
# network
network: n1
multiCluster: {clusterName: c1}
meshConfig: {defaultConfig: {proxyMetadata: {A: b, N: "1"}}, trustDomain: lab}
caAddress: "https://ca:443"
xdsAddress: "https://xds:443"
istioNamespace: istio-lab
---
# pods
env: {A: b, N: "1", SKIP_VALIDATE_TRUST_DOMAIN: "true"}
volumes: [{name: v, emptyDir: {}}]
volumeMounts: [{name: v, mountPath: /v}]
nodeSelector: {a: b}
affinity: {podAffinity: {}}
tolerations: []
updateStrategy: {type: OnDelete}
terminationGracePeriodSeconds: 5
seLinuxOptions: {type: spc_t}
resources: {limits: {cpu: 1}}
resourceQuotas: {enabled: true, pods: 7}
dnsPolicy: None
dnsConfig: {nameservers: [192.0.2.53]}
peerCaCrl: {enabled: true}
trustBundleName: bundle
logAsJson: true
logLevel: debug
---
# cluster scope
resourceScope: cluster
---
# namespace scope
resourceScope: namespace
"#;

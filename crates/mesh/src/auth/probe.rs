//! What the answers to unauthenticated requests prove.

use serde_json::Value;

/// The path the DENY policy leaves open, where a route answers by itself.
pub const PROBE_PATH: &str = "/.well-known/istio-integrator/probe";
/// A path that leads nowhere.
pub const DENIED_PATH: &str = "/.well-known/istio-integrator/denied";
/// What the route at [`PROBE_PATH`] answers.
pub const PROBE_BODY: &str = "istio-integrator: no authorization stands in front of this path";

/// What Envoy's role-based access control answers with 403.
const RBAC_BODY: &str = "RBAC: access denied";

/// Who answered a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Nobody that proves anything: the API server could not reach the pod, or an application
    /// answered.
    Nobody,
    /// The gateway, which has no route there.
    NoRoute,
    /// The probe's own route: nothing stands in front of it.
    Open,
    /// A DENY policy.
    Denied,
    /// The authorizer, or the filter that asks it.
    Authorizer,
}

/// Who answered, by the status and body of an answer that came through the API server.
pub fn read_answer(status: u16, body: &str) -> Answer {
    if is_api_status(body) {
        return Answer::Nobody;
    }
    let body = body.trim();
    match status {
        404 => Answer::NoRoute,
        403 if body == RBAC_BODY => Answer::Denied,
        200 if body == PROBE_BODY => Answer::Open,
        // A filter that lets nothing pass does not say so with a 2xx: an application answered. A 5xx is
        // Envoy that lacks what should answer; the filter turns its own failures into 403.
        // 301 is how plain HTTP is left; nobody is sent to a login page for good.
        200..=299 | 301 | 500..=599 => Answer::Nobody,
        _ => Answer::Authorizer,
    }
}

/// Whether the body is the API server's own: Kubernetes' `Status` object.
fn is_api_status(body: &str) -> bool {
    serde_json::from_str::<Value>(body).is_ok_and(|value| {
        value.get("kind").and_then(Value::as_str) == Some("Status")
            && value.get("apiVersion").and_then(Value::as_str) == Some("v1")
    })
}

/// The answers of one ready gateway pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PodEvidence {
    /// At [`PROBE_PATH`].
    pub probe: Answer,
    /// At [`DENIED_PATH`].
    pub denied: Answer,
}

/// The answers of all ready gateway pods. Nothing is proven without a pod.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Evidence {
    /// One entry a pod.
    pub pods: Vec<PodEvidence>,
}

impl Evidence {
    /// Whether authorization stands in front of every pod.
    pub fn in_force(&self) -> bool {
        self.all(|pod| pod.probe == Answer::Authorizer)
    }

    /// Whether the DENY policy stands in front of every pod.
    pub fn denying(&self) -> bool {
        self.all(|pod| pod.denied == Answer::Denied)
    }

    /// Whether the probe's route answers on every pod: nothing stands in front of it.
    pub fn open(&self) -> bool {
        self.all(|pod| pod.probe == Answer::Open)
    }

    /// Whether the probe's route is on no pod any more, and so no route that was taken away with it.
    pub fn no_route(&self) -> bool {
        self.all(|pod| pod.probe == Answer::NoRoute)
    }

    fn all(&self, holds: impl Fn(&PodEvidence) -> bool) -> bool {
        !self.pods.is_empty() && self.pods.iter().all(holds)
    }
}

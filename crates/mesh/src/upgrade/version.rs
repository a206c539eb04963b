//! Minors, and what each needs of the cluster.

use std::fmt;

/// A minor release, `1.31`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Minor {
    /// `1`.
    pub major: u32,
    /// `31`.
    pub minor: u32,
}

impl Minor {
    /// A minor.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The minor of a version such as `1.31.0`, `v1.36.3` or `1.31.0-alpha.0`.
    pub fn of(version: &str) -> Option<Self> {
        let mut parts = version.trim_start_matches('v').split(['.', '-', '+']);
        let mut number = || parts.next()?.parse().ok();
        Some(Self::new(number()?, number()?))
    }

    /// How many minors `self` is after `other`; negative before; none between majors.
    pub fn after(self, other: Self) -> Option<i64> {
        (self.major == other.major).then(|| i64::from(self.minor) - i64::from(other.minor))
    }

    /// The minors strictly between `self` and a later one.
    pub fn until(self, later: Self) -> Vec<Self> {
        (self.minor + 1..later.minor)
            .map(|minor| Self::new(self.major, minor))
            .collect()
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The numbers of a version, to tell which of two of one minor is the later; a pre-release is
/// before its release.
pub fn order(version: &str) -> (Vec<u64>, bool, Vec<u64>) {
    let numbers = |text: &str| {
        text.split(['.', '-'])
            .filter_map(|part| part.parse().ok())
            .collect()
    };
    let version = version.trim_start_matches('v');
    let version = version.split('+').next().unwrap_or_default();
    match version.split_once('-') {
        Some((release, pre)) => (numbers(release), false, numbers(pre)),
        None => (numbers(version), true, Vec::new()),
    }
}

/// The oldest Kubernetes that an Istio minor starts on, as its installer enforces it. The charms
/// support nothing before 1.20, and a minor that is not known yet needs what the newest known needs.
pub fn kubernetes_minimum(istio: Minor) -> Minor {
    let minor = match istio.minor {
        ..=21 => 25,
        22 | 23 => 26,
        24 | 25 => 28,
        26 | 27 => 29,
        28 | 29 => 30,
        _ => 32,
    };
    Minor::new(1, minor)
}

/// The Gateway API definitions that istiod ignores when they are of an older bundle: plural, kind,
/// oldest bundle, first Istio minor that asks for it (`pilot/pkg/config/kube/crdclient`).
pub const GATEWAY_API_MINIMUM: [(&str, &str, &str, Minor); 4] = [
    ("grpcroutes", "GRPCRoute", "1.1.0", Minor::new(1, 22)),
    (
        "backendtlspolicies",
        "BackendTLSPolicy",
        "1.4.0",
        Minor::new(1, 28),
    ),
    ("tlsroutes", "TLSRoute", "1.5.0", Minor::new(1, 30)),
    ("tcproutes", "TCPRoute", "1.6.0", Minor::new(1, 31)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minor_is_the_first_two_numbers() {
        let check = |text, expect| assert_eq!(Minor::of(text), expect, "{text}");
        check("1.31.0", Some(Minor::new(1, 31)));
        check("v1.36.3", Some(Minor::new(1, 36)));
        check("1.31.0-alpha.0", Some(Minor::new(1, 31)));
        check("1.32-dev", Some(Minor::new(1, 32)));
        check("unknown", None);
        check("", None);
        check("1", None);
    }

    #[test]
    fn a_pre_release_is_before_its_release() {
        let before = |a, b| assert!(order(a) < order(b), "{a} {b}");
        before("1.31.0-alpha.0", "1.31.0");
        before("1.31.0-alpha.0", "1.31.0-alpha.1");
        before("1.30.9", "1.30.10");
        before("1.30.10", "1.31.0-alpha.0");
    }

    #[test]
    fn each_minor_has_its_oldest_kubernetes() {
        let check = |istio, expect| {
            let found = kubernetes_minimum(Minor::new(1, istio));
            assert_eq!(found, Minor::new(1, expect), "1.{istio}");
        };
        check(20, 25);
        check(22, 26);
        check(24, 28);
        check(27, 29);
        check(29, 30);
        check(30, 32);
        check(40, 32);
    }

    #[test]
    fn the_minors_between_are_named() {
        let names = |a: Minor, b: Minor| {
            let between = a.until(b);
            between.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            names(Minor::new(1, 26), Minor::new(1, 30)),
            ["1.27", "1.28", "1.29"]
        );
        assert!(names(Minor::new(1, 30), Minor::new(1, 31)).is_empty());
        assert!(names(Minor::new(1, 31), Minor::new(1, 30)).is_empty());
    }
}

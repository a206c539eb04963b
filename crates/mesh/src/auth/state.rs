//! What to do next about authorization, from what is wanted, what is live and what is proven.
//!
//! Invariants: while authorization is wanted, either it is proven in force or the DENY policy is
//! among the objects, unless nothing of ours is routed and others guard the gateway, or may; a route that
//! does not exist yet waits until one of the two is proven. The filter is written only where the probe's
//! route is seen to answer, so that the change of the answer is proof, or where others' authorization
//! hides that route and nothing of ours is routed; and it is taken out only behind the proven DENY
//! policy. A filter whose content changes is taken out and put back, since from outside the old and the
//! new one look alike.

use std::str::FromStr;

use super::probe::Evidence;

/// The `auth` option.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AuthMode {
    /// Wanted as soon as an authorizer is related, and from then on until told otherwise.
    #[default]
    Auto,
    /// Always wanted.
    Required,
    /// Never wanted.
    None,
}

impl FromStr for AuthMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" | "" => Ok(Self::Auto),
            "required" => Ok(Self::Required),
            "none" => Ok(Self::None),
            other => Err(format!("must be auto, required or none, is {other:?}")),
        }
    }
}

/// Whether authorization is wanted. `remembered`: our filter or DENY policy is live.
pub fn wanted(mode: AuthMode, related: bool, remembered: bool) -> bool {
    match mode {
        AuthMode::None => false,
        AuthMode::Required => true,
        AuthMode::Auto => related || remembered,
    }
}

/// The live filter in the namespace of the gateway's workload, compared with the desired one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LiveFilter {
    /// There is none.
    Absent,
    /// It is as desired.
    Current,
    /// It differs.
    Outdated,
}

/// What makes putting up a filter easier than usual.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ease {
    /// Nothing.
    #[default]
    None,
    /// The routes themselves let only those pass who may: there is nothing to prove.
    SelfProving,
    /// No route leads to a workload: there is nothing to guard.
    NothingRouted,
    /// No route of ours leads to a workload, and the probe's is on no pod yet: there is nothing to deny,
    /// and who guards the gateway cannot be told.
    Unseen,
    /// No route of ours leads to a workload, and somebody's authorization answers already: denial would
    /// stop nothing but others' requests. Routes that come ask for what only our filter sets.
    OthersGuard,
    /// A live filter may be changed where it is: what asks besides it goes on asking.
    InPlace,
}

/// What is known before a step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Situation {
    /// Whether authorization is wanted.
    pub wanted: bool,
    /// Whether the authorizer is known well enough to write the filter.
    pub filter_ready: bool,
    /// The live filter. Without a desired one, any live filter counts as current.
    pub live: LiveFilter,
    /// What the pods answered.
    pub evidence: Evidence,
    /// What makes the change easier than usual.
    pub ease: Ease,
}

/// Which routes may be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// All that are desired.
    All,
    /// Only those that exist already.
    Established,
}

/// How far authorization is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuthState {
    /// Not wanted.
    Off,
    /// Proven in force.
    InForce,
    /// Not in force; everything is proven to be denied.
    Denied,
    /// Neither is proven; the DENY policy is among the objects.
    Unproven,
}

/// What becomes of the filter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilterStep {
    /// The desired one is among the objects.
    Write,
    /// A live one is left as it is.
    Keep,
    /// There is to be none in the namespace of the gateway's workload; while authorization is wanted,
    /// those elsewhere are left as they are.
    Remove,
}

/// What is to be written now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// What becomes of the filter.
    pub filter: FilterStep,
    /// Whether the DENY policy is among the objects.
    pub deny: bool,
    /// Which routes are.
    pub routes: Scope,
    /// How far authorization is.
    pub state: AuthState,
    /// Whether another look at the pods, after this step is written, could lead further.
    pub more: bool,
}

/// The next step.
pub fn step(situation: &Situation) -> Step {
    let Situation {
        wanted,
        filter_ready,
        live,
        evidence,
        ease,
    } = situation;
    let open = |filter, state| Step {
        filter,
        deny: false,
        routes: Scope::All,
        state,
        more: false,
    };
    if !wanted {
        return open(FilterStep::Remove, AuthState::Off);
    }
    // What is changed where it is goes on asking.
    let asks = match live {
        LiveFilter::Current => true,
        LiveFilter::Outdated => *ease == Ease::InPlace,
        LiveFilter::Absent => false,
    };
    let proven = asks && evidence.in_force();
    if *filter_ready && (*ease == Ease::SelfProving || proven) {
        return open(FilterStep::Write, AuthState::InForce);
    }
    let denying = evidence.denying();
    let (filter, more) = match (filter_ready, live) {
        // Whatever filter is there stays: it can only deny more.
        (false, _) => (FilterStep::Keep, !denying),
        (true, LiveFilter::Current) => (FilterStep::Write, true),
        // Not before the probe's route answers on every pod: then an answer from elsewhere can only
        // come from the filter, not from an application at `/`, nor from the filter that was.
        (true, LiveFilter::Absent) if evidence.open() || *ease == Ease::OthersGuard => {
            (FilterStep::Write, true)
        }
        (true, LiveFilter::Outdated) if *ease == Ease::InPlace => (FilterStep::Write, true),
        (true, LiveFilter::Outdated) if denying || *ease == Ease::NothingRouted => {
            (FilterStep::Remove, true)
        }
        // What guards other namespaces' pods stays meanwhile, too.
        (true, LiveFilter::Absent | LiveFilter::Outdated) => (FilterStep::Keep, true),
    };
    let deny = !matches!(ease, Ease::Unseen | Ease::OthersGuard);
    let denying = deny && denying;
    Step {
        filter,
        deny,
        routes: if denying {
            Scope::All
        } else {
            Scope::Established
        },
        state: if denying {
            AuthState::Denied
        } else {
            AuthState::Unproven
        },
        more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::probe::{Answer, PodEvidence};

    fn evidence(pods: &[(Answer, Answer)]) -> Evidence {
        Evidence {
            pods: pods
                .iter()
                .map(|(probe, denied)| PodEvidence {
                    probe: *probe,
                    denied: *denied,
                })
                .collect(),
        }
    }

    fn situation() -> Situation {
        Situation {
            wanted: true,
            filter_ready: true,
            live: LiveFilter::Absent,
            evidence: Evidence::default(),
            ease: Ease::None,
        }
    }

    #[test]
    fn what_needs_no_proof_is_in_force_once_it_can_be_written() {
        let tokens = Situation {
            ease: Ease::SelfProving,
            ..situation()
        };
        assert_eq!(step(&tokens).state, AuthState::InForce);
        let unknown = Situation {
            filter_ready: false,
            ..tokens
        };
        assert_eq!(step(&unknown).state, AuthState::Unproven);
    }

    #[test]
    fn an_outdated_filter_is_changed_in_place_or_removed_where_nothing_is_routed() {
        let outdated = Situation {
            live: LiveFilter::Outdated,
            ..situation()
        };
        assert_eq!(step(&outdated).filter, FilterStep::Keep);
        let in_place = Situation {
            ease: Ease::InPlace,
            ..outdated.clone()
        };
        assert_eq!(step(&in_place).filter, FilterStep::Write);
        let nothing_routed = Situation {
            ease: Ease::NothingRouted,
            ..outdated
        };
        assert_eq!(step(&nothing_routed).filter, FilterStep::Remove);
    }

    #[test]
    fn behind_others_authorization_nothing_is_denied_and_routes_wait_for_the_filter() {
        let others = Situation {
            ease: Ease::OthersGuard,
            evidence: evidence(&[(Answer::Authorizer, Answer::Authorizer)]),
            ..situation()
        };
        let first = step(&others);
        assert_eq!(first.filter, FilterStep::Write);
        assert!(!first.deny);
        assert_eq!(
            (first.routes, first.state),
            (Scope::Established, AuthState::Unproven)
        );
        let unknown = step(&Situation {
            filter_ready: false,
            ..others.clone()
        });
        assert!(!unknown.deny);
        assert_eq!(unknown.routes, Scope::Established);
        let unseen = step(&Situation {
            ease: Ease::Unseen,
            evidence: evidence(&[(Answer::NoRoute, Answer::NoRoute)]),
            ..others.clone()
        });
        assert_eq!((unseen.filter, unseen.deny), (FilterStep::Keep, false));
        assert_eq!(unseen.routes, Scope::Established);
        let written = step(&Situation {
            live: LiveFilter::Current,
            ..others
        });
        assert_eq!(
            (written.routes, written.state),
            (Scope::All, AuthState::InForce)
        );
    }

    #[test]
    fn wanted_is_remembered_until_told_otherwise() {
        let check = |mode: &str, related: bool, remembered: bool, expect: bool| {
            let mode = mode.parse().unwrap();
            assert_eq!(
                wanted(mode, related, remembered),
                expect,
                "{mode:?} {related} {remembered}"
            );
        };
        check("auto", false, false, false);
        check("auto", true, false, true);
        check("auto", false, true, true);
        check("required", false, false, true);
        check("none", true, true, false);
        assert!("off".parse::<AuthMode>().is_err());
    }

    #[test]
    fn the_policy_is_lifted_only_when_every_pod_shows_the_current_filter() {
        use Answer::{Authorizer, Denied, NoRoute, Nobody, Open};
        use FilterStep::{Keep, Remove, Write};
        use LiveFilter::{Absent, Current, Outdated};
        let check = |ready: bool,
                     live: LiveFilter,
                     pods: &[(Answer, Answer)],
                     expect: (FilterStep, bool, Scope, AuthState)| {
            let evidence = evidence(pods);
            let got = step(&Situation {
                wanted: true,
                filter_ready: ready,
                live,
                evidence,
                ..situation()
            });
            assert_eq!(
                (got.filter, got.deny, got.routes, got.state),
                expect,
                "{live:?} {pods:?}"
            );
        };
        let unproven = |filter| (filter, true, Scope::Established, AuthState::Unproven);
        let denied = |filter| (filter, true, Scope::All, AuthState::Denied);
        let in_force = (Write, false, Scope::All, AuthState::InForce);
        check(true, Absent, &[], unproven(Keep));
        check(true, Absent, &[(NoRoute, NoRoute)], unproven(Keep));
        check(true, Absent, &[(Open, NoRoute)], unproven(Write));
        check(
            true,
            Absent,
            &[(Open, Denied), (Nobody, Nobody)],
            unproven(Keep),
        );
        check(true, Current, &[], unproven(Write));
        check(true, Current, &[(Open, Denied)], denied(Write));
        check(true, Current, &[(Authorizer, Denied)], in_force);
        check(
            true,
            Current,
            &[(Authorizer, NoRoute), (Nobody, Denied)],
            unproven(Write),
        );
        check(
            true,
            Current,
            &[(Authorizer, NoRoute), (Authorizer, NoRoute)],
            in_force,
        );
        check(true, Outdated, &[(Authorizer, NoRoute)], unproven(Keep));
        check(true, Outdated, &[(Authorizer, Denied)], denied(Remove));
        check(true, Absent, &[(Authorizer, Denied)], denied(Keep));
        check(true, Absent, &[(Open, Denied)], denied(Write));
        check(false, Current, &[(Authorizer, NoRoute)], unproven(Keep));
        check(false, Current, &[(Authorizer, Denied)], denied(Keep));
        check(false, Absent, &[(Open, NoRoute)], unproven(Keep));
    }

    #[test]
    fn no_filter_is_removed_before_denial_is_proven() {
        use Answer::{Authorizer, Denied, NoRoute, Nobody, Open};
        let answers = [Authorizer, Denied, NoRoute, Nobody, Open];
        for live in [
            LiveFilter::Absent,
            LiveFilter::Current,
            LiveFilter::Outdated,
        ] {
            for (probe, denied) in answers.iter().flat_map(|p| answers.map(|d| (*p, d))) {
                for filter_ready in [true, false] {
                    let evidence = evidence(&[(probe, denied)]);
                    let denying = evidence.denying();
                    let got = step(&Situation {
                        wanted: true,
                        filter_ready,
                        live,
                        evidence,
                        ..situation()
                    });
                    let removes = got.filter == FilterStep::Remove;
                    assert!(denying || !removes, "{live:?} {probe:?} {denied:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_left_once_authorization_is_not_wanted() {
        let evidence = evidence(&[(Answer::Authorizer, Answer::Denied)]);
        let live = LiveFilter::Current;
        let got = step(&Situation {
            wanted: false,
            filter_ready: true,
            live,
            evidence,
            ..situation()
        });
        assert_eq!(
            (got.filter, got.deny, got.routes),
            (FilterStep::Remove, false, Scope::All)
        );
    }
}

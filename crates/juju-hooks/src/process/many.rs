//! Questions asked at the same time, and how each is put and its answer read.

use super::spawn::Call;
use super::{ProcessTools, argument_text};
use crate::answers::{self, config, databag, read, relation_ids, units};
use crate::databag::Databag;
use crate::error::Result;
use crate::ids::{EndpointName, RelationKey, UnitName};
use crate::status::StatusMessage;
use crate::tools::{Bag, Opening, Scope, Shown, ShownResult};

pub(super) const JSON: &str = "--format=json";

pub(super) fn ids_args(endpoint: &EndpointName) -> [&str; 2] {
    [JSON, endpoint.as_str()]
}

pub(super) fn list_args(relation: &RelationKey) -> [String; 3] {
    [JSON.to_owned(), "-r".to_owned(), relation.to_string()]
}

pub(super) fn get_args(relation: &RelationKey, bag: &Bag) -> Vec<String> {
    let mut args = list_args(relation).to_vec();
    if matches!(bag, Bag::App(_)) {
        args.push("--app".to_owned());
    }
    args.extend(["-".to_owned(), bag.to_string()]);
    args
}

pub(super) fn status_args(scope: Scope, status: &StatusMessage) -> Vec<String> {
    let mut args = Vec::new();
    if scope == Scope::App {
        args.push("--application=true".to_owned());
    }
    args.push(status.status.as_str().to_owned());
    let message = argument_text(&status.message);
    if !message.is_empty() {
        args.extend(["--".to_owned(), message]);
    }
    args
}

/// The next answer. There are as many as calls were made.
fn next(answers: &mut impl Iterator<Item = Result<String>>) -> Result<String> {
    answers.next().unwrap_or_else(|| Ok(String::new()))
}

impl ProcessTools {
    pub(super) fn ask_opening(&self, endpoints: &[&EndpointName], goal: bool) -> Opening {
        let mut calls = vec![
            Call::new("config-get", &[JSON]),
            Call::new("is-leader", &[JSON]),
        ];
        if goal {
            calls.push(Call::new("goal-state", &[JSON]));
        }
        let ids = endpoints.iter().map(|name| ids_args(name));
        calls.extend(ids.map(|args| Call::new("relation-ids", &args)));
        let mut answers = self.run_many(&calls).into_iter();
        Opening {
            config: next(&mut answers).and_then(|text| config(&text)),
            leader: next(&mut answers).and_then(|text| read("is-leader", &text)),
            goal: goal.then(|| next(&mut answers).and_then(|text| answers::goal(&text))),
            relations: answers
                .map(|answer| answer.and_then(|text| relation_ids(&text)))
                .collect(),
        }
    }

    pub(super) fn ask_lists(&self, relations: &[&RelationKey]) -> Vec<Result<Vec<UnitName>>> {
        let calls: Vec<Call> = relations
            .iter()
            .map(|key| Call::new("relation-list", &list_args(key)))
            .collect();
        let answers = self.run_many(&calls).into_iter();
        answers
            .map(|answer| answer.and_then(|text| units(&text)))
            .collect()
    }

    pub(super) fn ask_bags(&self, bags: &[(&RelationKey, Bag)]) -> Vec<Result<Databag>> {
        let calls: Vec<Call> = bags
            .iter()
            .map(|(key, bag)| Call::new("relation-get", &get_args(key, bag)))
            .collect();
        let answers = self.run_many(&calls).into_iter();
        answers
            .map(|answer| answer.and_then(|text| databag(&text)))
            .collect()
    }

    pub(super) fn show_all(&self, shown: &Shown<'_>) -> ShownResult {
        let version = shown
            .version
            .map(|version| Call::new("application-version-set", &["--", &argument_text(version)]));
        let status = |scope, status: Option<&StatusMessage>| {
            status.map(|status| Call::new("status-set", &status_args(scope, status)))
        };
        let wanted = [
            version,
            status(Scope::App, shown.app),
            status(Scope::Unit, shown.unit),
        ];
        let there = wanted.each_ref().map(Option::is_some);
        let calls: Vec<Call> = wanted.into_iter().flatten().collect();
        let mut answers = self.run_many(&calls).into_iter();
        let [version, app, unit] = there.map(|there| {
            if there {
                next(&mut answers).map(drop)
            } else {
                Ok(())
            }
        });
        ShownResult { version, app, unit }
    }
}

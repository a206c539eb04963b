//! Requests without end: through the gateway from here, and between sidecars inside.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::pilot::{GATEWAY, Lab, OLD, TALLIES};

/// Between two requests of one loop.
const PAUSE: Duration = Duration::from_millis(200);

/// What became of the requests of one loop.
#[derive(Clone, Debug, Default)]
struct Tally {
    sent: u64,
    failed: u64,
    /// Answered 200 though they must not be.
    open: u64,
    told: Vec<String>,
}

/// All loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<String, Tally>);

impl Counts {
    /// How many requests were not answered as they must be.
    pub(crate) fn failed(&self) -> u64 {
        self.0.values().map(|tally| tally.failed).sum()
    }

    /// How many were let through that must not be.
    pub(crate) fn open(&self) -> u64 {
        self.0.values().map(|tally| tally.open).sum()
    }

    /// Every loop ran, and nothing failed in any.
    ///
    /// # Errors
    /// It is not so.
    pub(crate) fn nothing_failed(&self) -> Result<()> {
        for tally in self.0.values() {
            ensure!(tally.sent > 100, "a loop sent {} requests only", tally.sent);
        }
        let (failed, open) = (self.failed(), self.open());
        ensure!(
            open == 0,
            "{open} requests were let through that must not be"
        );
        ensure!(failed == 0, "{failed} requests failed");
        Ok(())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut sent, mut failed, mut open) = (0, 0, 0);
        for (name, tally) in &self.0 {
            let Tally {
                sent: s,
                failed: x,
                open: o,
                told,
            } = tally;
            writeln!(
                f,
                "{name}: {s} sent, {x} failed, {o} let through unauthorized"
            )?;
            for line in told {
                writeln!(f, "    {line}")?;
            }
            (sent, failed, open) = (sent + s, failed + x, open + o);
        }
        write!(
            f,
            "requests sent {sent}, failed {failed}, unauthorized let through {open}"
        )
    }
}

/// Running loops.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    lab: &'a Lab,
    counts: Arc<Mutex<Counts>>,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl<'a> Load<'a> {
    /// Starts them, once everything is answered as it must be.
    ///
    /// # Errors
    /// It is not within two minutes.
    pub(crate) fn start(lab: &'a Lab) -> Result<Self> {
        let service = lab
            .api
            .get(&format!("/api/v1/namespaces/{OLD}/services/{GATEWAY}"))?;
        let ip = service["spec"]["clusterIP"]
            .as_str()
            .context("no address")?;
        let address = SocketAddr::new(ip.parse()?, 80);
        let mut load = Self {
            lab,
            counts: Arc::default(),
            ended: Arc::default(),
            threads: Vec::new(),
        };
        let session = Some("session=lab");
        // Routes and identities reach the proxies a moment after the pods are ready.
        for (path, cookie, want) in [
            ("/appa/", session, 200),
            ("/appb/", session, 200),
            ("/dash-a/", session, 200),
            ("/dash-b/", session, 200),
            ("/appa/", None, 401),
        ] {
            e2e::wait::until(
                &format!("{want} for {path}"),
                Duration::from_mins(2),
                || {
                    let answer = ask(address, path, cookie);
                    Ok(answer.ok().filter(|status| *status == want))
                },
            )?;
        }
        for (name, path, cookie, want) in [
            ("gateway to appa", "/appa/", session, 200),
            ("gateway to appb", "/appb/", session, 200),
            ("gateway to dash-a", "/dash-a/", session, 200),
            ("gateway to dash-b", "/dash-b/", session, 200),
            ("gateway without a session", "/appa/", None, 401),
            ("dash-a without a session", "/dash-a/", None, 401),
            ("gateway to what is blocked", "/appa/blocked", session, 403),
        ] {
            load.spawn(name, address, path, cookie, want);
        }
        Ok(load)
    }

    fn spawn(
        &mut self,
        name: &str,
        address: SocketAddr,
        path: &str,
        cookie: Option<&'static str>,
        want: u16,
    ) {
        let (counts, ended) = (Arc::clone(&self.counts), Arc::clone(&self.ended));
        let (name, path) = (name.to_owned(), path.to_owned());
        self.threads.push(thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let answer = ask(address, &path, cookie);
                let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                let tally = counts.0.entry(name.clone()).or_default();
                tally.sent += 1;
                if answer.as_ref().ok() != Some(&want) {
                    tally.failed += 1;
                    if tally.told.len() < 20 {
                        tally.told.push(format!("{answer:?}"));
                    }
                }
                if want != 200 && answer.is_ok_and(|status| status == 200) {
                    tally.open += 1;
                }
                drop(counts);
                thread::sleep(PAUSE);
            }
        }));
    }

    /// All counts until now.
    ///
    /// # Errors
    /// The tallies of those inside cannot be read.
    pub(crate) fn counts(&self) -> Result<Counts> {
        let mut counts = self
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let text = self
            .lab
            .inside("sh", &["-c", &format!("cat {TALLIES}/*.json")])?;
        let tallies =
            serde_json::Deserializer::from_str(&text).into_iter::<BTreeMap<String, Value>>();
        for tally in tallies {
            for (name, of) in tally? {
                let number = |key: &str| of[key].as_u64().unwrap_or(0);
                let sum = counts.0.entry(name).or_default();
                sum.sent += number("sent");
                sum.failed += number("failed");
                sum.open += number("open");
                let told = of["told"].as_array().into_iter().flatten();
                sum.told.extend(told.map(ToString::to_string));
            }
        }
        Ok(counts)
    }

    /// Ends them and counts.
    ///
    /// # Errors
    /// The tallies of those inside cannot be read.
    pub(crate) fn stop(mut self) -> Result<Counts> {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
        self.counts()
    }
}

fn ask(address: SocketAddr, path: &str, cookie: Option<&str>) -> Result<u16, String> {
    let headers: Vec<(&str, &str)> = cookie
        .map(|cookie| ("Cookie", cookie))
        .into_iter()
        .collect();
    let answer = e2e::http::get(address, "lab.example", path, &headers);
    answer
        .map(|answer| answer.status)
        .map_err(|error| format!("{error:#}"))
}

//! Taking one step of a unit agent: running the charm's program, keeping or dropping its writes.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;

use crate::Model;
use crate::ModelError;
use crate::agent::commit;
use crate::agent::context::ActionSaid;
use crate::agent::context::HookRun;
use crate::agent::context::Pending;
use crate::agent::environment;
use crate::agent::process;
use crate::agent::process::End;
use crate::agent::process::Ran;
use crate::agent::process::Stream;
use crate::agent::resolver::Step;
use crate::agent::server;
use crate::charm::archive;
use crate::cloud::Credentials;
use crate::hook::Hook;
use crate::hook::RelationKind;
use crate::model::Fault;
use crate::model::Level;
use crate::model::random_hex;
use crate::model::status;
use crate::record::HookRecord;
use crate::record::ToolCall;
use crate::state::Bag;
use crate::state::HookError;
use crate::state::Task;
use crate::state::TaskKind;
use crate::state::split_unit;
use crate::store::access;
use crate::tools;

/// First wait before a failed hook is tried again, doubled each time up to [`RETRY_MAX_SECS`].
const RETRY_FIRST_SECS: i64 = 5;
const RETRY_MAX_SECS: i64 = 300;

/// What a hook or action says whose writes were refused.
const COMMITTING: &str = "committing requested changes failed";

/// Mounts the service account where a charm pod has it, then becomes the charm. Token, namespace
/// and certificate come on standard input, so they are on no command line and in no file.
const IN_POD: &str = r#"set -e
mount -t tmpfs -o mode=0755,size=1m tmpfs /run
[ /var/run -ef /run ] || mount -t tmpfs -o mode=0755,size=1m tmpfs /var/run
d=/var/run/secrets/kubernetes.io/serviceaccount
mkdir -p "$d"
IFS= read -r token
IFS= read -r namespace
printf %s "$token" > "$d/token"
printf %s "$namespace" > "$d/namespace"
cat > "$d/ca.crt"
unset PWD OLDPWD SHLVL d token namespace
exec "$@" < /dev/null
"#;

/// Takes one step for `unit`.
pub(crate) fn take(model: &mut Model, unit: &str, step: Step) -> Result<(), ModelError> {
    match step {
        Step::Run(hook) => run(model, unit, &hook),
        Step::Skip => {
            let error = model
                .state
                .unit_mut(unit)
                .and_then(|u| u.uniter.error.take());
            if let Some(error) = error {
                commit_hook(model, unit, &error.hook)?;
            }
            model.save()
        }
        Step::SwapCharm => {
            swap_charm(model, unit)?;
            model.save()
        }
        Step::Vanish => {
            model.vanish(unit)?;
            model.save()
        }
    }
}

/// What came of the charm's program.
enum Verdict {
    /// Exit 0 and everything written.
    Done,
    /// To be run again, without an error.
    Again,
    /// Failed, in Juju's words.
    Failed(String),
}

fn run(model: &mut Model, unit: &str, hook: &Hook) -> Result<(), ModelError> {
    let Some((app, _)) = split_unit(unit) else {
        return Ok(());
    };
    prepare(model, unit, hook)?;
    let task = match hook {
        Hook::Task(id) => model.state.tasks.get(id).cloned().map(|t| (*id, t)),
        _ => None,
    };
    let (finished, how) = execute(model, unit, app, hook, task.as_ref())?;
    let Finished {
        label,
        ran,
        verdict,
        said,
        calls,
        out,
        err,
    } = finished;

    if let Some((id, _)) = &task {
        finish_task(model, *id, &ran, &verdict, said, &out, &err);
    }
    let (ok, failure) = match &verdict {
        Verdict::Done => {
            let failed = task.as_ref().and_then(|(id, _)| model.state.tasks.get(id));
            let message = failed
                .filter(|t| t.status == "failed")
                .map(|t| t.message.clone());
            (message.is_none(), message.unwrap_or_default())
        }
        Verdict::Again => (false, "terminated".to_owned()),
        Verdict::Failed(text) => (false, text.clone()),
    };
    let relation = hook.relation();
    model.state.hooks_run += 1;
    model.record(&HookRecord {
        seq: model.state.hooks_run,
        unit: unit.to_owned(),
        hook: label.clone(),
        relation_id: relation.map(|r| format!("{}:{}", r.endpoint, r.id)),
        remote_unit: relation.and_then(|r| r.remote_unit.clone()),
        ok,
        failure,
        wall_ms: u64::try_from(ran.wall.as_millis()).unwrap_or(u64::MAX),
        peak_rss_kib: ran.peak_rss_kib,
        calls,
    })?;
    conclude(model, unit, hook, &label, &how, &verdict)?;
    model.save()
}

/// Statuses, scope and charm directory before a hook.
fn prepare(model: &mut Model, unit: &str, hook: &Hook) -> Result<(), ModelError> {
    let now = model.clock.now();
    if model
        .state
        .unit(unit)
        .is_some_and(|u| u.uniter.charm_rev.is_none())
    {
        unpack_charm(model, unit)?;
    }
    if let Hook::Relation(r) = hook
        && r.kind == RelationKind::Created
    {
        let address = model
            .state
            .unit(unit)
            .map(|u| u.address.clone())
            .unwrap_or_default();
        if let Some(relation) = model.state.relations.get_mut(&r.id)
            && relation.scope.insert(unit.to_owned())
        {
            let data = [
                ("egress-subnets".to_owned(), format!("{address}/32")),
                ("ingress-address".to_owned(), address.clone()),
                ("private-address".to_owned(), address),
            ];
            relation.unit_bags.insert(
                unit.to_owned(),
                Bag {
                    data: data.into(),
                    version: 1,
                },
            );
        }
    }
    let message = match hook {
        Hook::Task(id) => match model.state.tasks.get_mut(id) {
            Some(task) => {
                "running".clone_into(&mut task.status);
                match &task.kind {
                    TaskKind::Action { name, .. } => format!("running action {name}"),
                    TaskKind::Exec { .. } => "running commands".to_owned(),
                }
            }
            None => String::new(),
        },
        hook => format!("running {} hook", hook.name()),
    };
    if let Some(found) = model.state.unit_mut(unit) {
        let own = match hook {
            Hook::Install => Some("installing charm software"),
            Hook::Stop => Some("stopping charm software"),
            Hook::Remove => Some("cleaning up prior to charm deletion"),
            _ => None,
        };
        if let Some(message) = own {
            found.workload = status("maintenance", message, now);
        }
        if *hook != Hook::UpdateStatus {
            found.agent = status("executing", &message, now);
        }
        if let Hook::Relation(r) = hook {
            found.uniter.relations.entry(r.id).or_default();
        }
        found.uniter.running = Some(hook.clone());
    }
    tools_dir(model)?;
    model.save()
}

/// All that is known of a program that ran.
struct Finished {
    label: String,
    ran: Ran,
    verdict: Verdict,
    said: ActionSaid,
    calls: Vec<ToolCall>,
    out: Vec<u8>,
    err: Vec<u8>,
}

fn execute(
    model: &mut Model,
    unit: &str,
    app: &str,
    hook: &Hook,
    task: Option<&(u64, Task)>,
) -> Result<(Finished, String), ModelError> {
    let nothing = Ran {
        end: End::Exit(0),
        wall: Duration::ZERO,
        peak_rss_kib: 0,
    };
    let params = match task {
        Some((
            _,
            Task {
                kind: TaskKind::Action { params, .. },
                ..
            },
        )) => Some(params.clone()),
        _ => None,
    };
    let credentials = model.credentials(app);
    let context_id = format!("{unit}-{}-{}", hook.name(), random_hex());
    let charm_dir = model.charm_dir(unit);
    let tools = tools_dir(model)?;
    let (program, how) = program(&charm_dir, hook, task);
    let namespaced = matches!(credentials, Ok(Some(_))) && private_mounts(model, &charm_dir);
    let limit = model.options.hook_limit;
    let socket = format!(
        "@/{}/{}.socket",
        &model.state.uuid[..13],
        crate::model::tag(unit)
    );
    let env = environment::variables(&environment::Facts {
        state: &model.state,
        unit,
        hook,
        task: task.map(|(id, t)| (*id, t)),
        context_id: &context_id,
        socket: &socket,
        charm_dir: &charm_dir,
        tools_dir: &tools,
        agent_path: &model.options.agent_path,
        juju_version: &model.options.juju_version,
        api_version: &model.cloud.api_version().unwrap_or_default(),
        credentials: credentials.as_ref().ok().and_then(Option::as_ref),
    });
    let hook_run = HookRun {
        model,
        unit: unit.to_owned(),
        app: app.to_owned(),
        hook: hook.clone(),
        params,
        context_id,
        pending: Pending::default(),
        said: ActionSaid::default(),
        calls: Vec::new(),
    };
    let label = hook_run.label();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let finished = |verdict, ran, run: HookRun<'_>, out, err| Finished {
        label: label.clone(),
        ran,
        verdict,
        said: run.said,
        calls: run.calls,
        out,
        err,
    };
    let credentials = match credentials {
        Ok(credentials) => credentials,
        Err(e) => {
            let text = ModelError::Cloud(e).chain();
            return Ok((
                finished(Verdict::Failed(text), nothing, hook_run, out, err),
                how,
            ));
        }
    };
    let argv = match program {
        Program::Run(argv) => argv,
        Program::Missing if task.is_some() => {
            let text = "action not implemented on unit".to_owned();
            return Ok((
                finished(Verdict::Failed(text), nothing, hook_run, out, err),
                how,
            ));
        }
        Program::Missing => {
            return Ok((finished(Verdict::Done, nothing, hook_run, out, err), how));
        }
        Program::Unusable(text) => {
            return Ok((
                finished(Verdict::Failed(text), nothing, hook_run, out, err),
                how,
            ));
        }
    };
    let (argv, stdin) = match credentials.filter(|_| namespaced) {
        Some(credentials) => in_pod(argv, &credentials),
        None => (argv, None),
    };
    let spec = process::Spec {
        argv,
        env: &env,
        dir: &charm_dir,
        stdin,
        limit,
    };

    let shared = Mutex::new(hook_run);
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = server::serve(&socket, &shared, || {
        let started = |pid, time| {
            let mut run = lock();
            let name = run.unit.clone();
            if let Some(u) = run.model.state.unit_mut(&name) {
                u.uniter.process = Some((pid, time));
            }
            // Without this the clean-up after a kill would miss the process; nothing else breaks.
            let _ = run.model.save();
        };
        process::run(spec, started, |stream, line| {
            let text = String::from_utf8_lossy(line);
            let (level, sink) = match stream {
                Stream::Out => (Level::Debug, &mut out),
                Stream::Err => (Level::Warning, &mut err),
            };
            lock().log_output(level, &text);
            sink.extend_from_slice(line);
            sink.push(b'\n');
        })
    });
    let mut hook_run = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (ran, verdict) = match ran.and_then(|r| r) {
        Ok(ran) => {
            let verdict = judge(&mut hook_run, &ran);
            (ran, verdict)
        }
        Err(e) => (
            nothing,
            Verdict::Failed(format!("cannot run the charm: {e}")),
        ),
    };
    Ok((finished(verdict, ran, hook_run, out, err), how))
}

/// Exit code to verdict, flushing on 0.
fn judge(run: &mut HookRun<'_>, ran: &Ran) -> Verdict {
    match ran.end {
        End::Exit(0) => match strike(run).and_then(|()| run.flush()) {
            Ok(()) => Verdict::Done,
            Err(text) => Verdict::Failed(format!("{COMMITTING}: {text}")),
        },
        End::Exit(code) => Verdict::Failed(format!("exit status {code}")),
        End::Signal(9 | 15) if run.params.is_none() => Verdict::Again,
        End::Signal(signal) => Verdict::Failed(format!("signal: {signal}")),
        End::TimedOut => Verdict::Failed(format!(
            "timed out after {} s",
            run.model.options.hook_limit.as_secs()
        )),
    }
}

/// Lets an injected fault strike between the end of the program and the flush.
fn strike(run: &mut HookRun<'_>) -> Result<(), String> {
    let name = run.label();
    let position = run.model.faults.iter().position(|fault| match fault {
        Fault::LoseLeadership(hook) | Fault::FailFlush(hook) => *hook == name,
    });
    match position.map(|at| run.model.faults.remove(at)) {
        None => Ok(()),
        Some(Fault::FailFlush(_)) => Err("controller is unreachable".into()),
        Some(Fault::LoseLeadership(_)) => {
            let app = run.app.clone();
            if let Some(app) = run.model.state.applications.get_mut(&app) {
                let old = app.leader;
                app.leader = app.units.keys().copied().find(|n| Some(*n) != old);
                if let Some(unit) = old.and_then(|n| app.units.get_mut(&n)) {
                    unit.uniter.leader = false;
                }
            }
            Ok(())
        }
    }
}

/// Results and status of an action or exec.
fn finish_task(
    model: &mut Model,
    id: u64,
    ran: &Ran,
    verdict: &Verdict,
    said: ActionSaid,
    out: &[u8],
    err: &[u8],
) {
    let Some(task) = model.state.tasks.get_mut(&id) else {
        return;
    };
    let mut results = said.results;
    let code = match (ran.end, verdict) {
        (End::Exit(0), Verdict::Failed(_)) => 1,
        (End::Exit(code), _) => code,
        (End::Signal(_) | End::TimedOut, _) => -1,
    };
    let mut err = err.to_vec();
    if let (End::Exit(0), Verdict::Failed(text)) = (ran.end, verdict) {
        err.extend_from_slice(text.as_bytes());
        err.push(b'\n');
    }
    for (name, bytes) in [("stdout", out), ("stderr", err.as_slice())] {
        if bytes.is_empty() {
            continue;
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            results.insert(name.into(), json!(text));
        } else {
            results.insert(name.into(), json!(base64(bytes)));
            results.insert(format!("{name}-encoding"), json!("base64"));
        }
    }
    results.insert("return-code".into(), json!(code));
    task.results = results;
    task.log = said.log;
    let (word, message) = match (verdict, said.failed) {
        (Verdict::Failed(text), _) => (
            "failed",
            if text.starts_with(COMMITTING) {
                COMMITTING.into()
            } else {
                text.clone()
            },
        ),
        (Verdict::Again, _) => ("failed", "action terminated".to_owned()),
        (Verdict::Done, Some(message)) => ("failed", message),
        (Verdict::Done, None) => ("completed", String::new()),
    };
    word.clone_into(&mut task.status);
    task.message = message;
}

/// What the agent remembers of the run, and its log lines.
fn conclude(
    model: &mut Model,
    unit: &str,
    hook: &Hook,
    label: &str,
    how: &str,
    verdict: &Verdict,
) -> Result<(), ModelError> {
    let now = model.clock.now();
    let logger = "juju.worker.uniter.operation";
    if let Some(u) = model.state.unit_mut(unit) {
        u.uniter.running = None;
        u.uniter.process = None;
    }
    if let Hook::Task(_) = hook {
        let text = format!("ran {label:?} action (via {how})");
        model.log(unit, Level::Info, logger, &text);
        return Ok(());
    }
    match verdict {
        Verdict::Done => {
            let text = if how == "missing" {
                format!("skipped {label:?} hook (missing)")
            } else {
                format!("ran {label:?} hook (via {how})")
            };
            model.log(unit, Level::Info, logger, &text);
            if let Some(u) = model.state.unit_mut(unit) {
                u.uniter.error = None;
                u.uniter.last_update_status = match hook {
                    Hook::UpdateStatus => Some(now),
                    _ => u.uniter.last_update_status,
                };
            }
            commit_hook(model, unit, hook)
        }
        Verdict::Again => {
            let text = format!("hook {label:?} was terminated; it is queued again");
            model.log(unit, Level::Warning, logger, &text);
            if let Some(u) = model.state.unit_mut(unit)
                && u.uniter.error.is_none()
            {
                u.uniter.queued = Some(hook.clone());
            }
            Ok(())
        }
        Verdict::Failed(why) => {
            let text = format!("hook {label:?} (via {how}) failed: {why}");
            model.log(unit, Level::Error, logger, &text);
            let awaiting = format!("awaiting error resolution for {label:?} hook");
            model.log(unit, Level::Info, "juju.worker.uniter", &awaiting);
            if let Some(u) = model.state.unit_mut(unit) {
                let before = u.uniter.error.take().filter(|e| e.hook == *hook);
                let attempts = before.map_or(0, |e| e.attempts) + 1;
                let wait = RETRY_FIRST_SECS
                    .saturating_mul(1 << (attempts - 1).min(10))
                    .min(RETRY_MAX_SECS);
                u.uniter.error = Some(HookError {
                    hook: hook.clone(),
                    attempts,
                    since: now,
                    next_retry: now
                        .saturating_add(SignedDuration::from_secs(wait))
                        .unwrap_or(now),
                    resolved: None,
                });
            }
            Ok(())
        }
    }
}

fn commit_hook(model: &mut Model, unit: &str, hook: &Hook) -> Result<(), ModelError> {
    commit::done(&mut model.state, unit, hook);
    if *hook == Hook::Remove {
        return model.vanish(unit);
    }
    if *hook == Hook::Start {
        let now = model.clock.now();
        if let Some(u) = model.state.unit_mut(unit).filter(|u| !u.status_set) {
            u.workload = status("unknown", "", now);
        }
    }
    model.reap()
}

/// What to start for a hook.
enum Program {
    Run(Vec<String>),
    Missing,
    Unusable(String),
}

/// The program for a hook and how Juju names that choice in its log.
fn program(charm: &Path, hook: &Hook, task: Option<&(u64, Task)>) -> (Program, String) {
    if let Some((
        _,
        Task {
            kind: TaskKind::Exec { script },
            ..
        },
    )) = task
    {
        let shell = if Path::new("/bin/bash").exists() {
            "/bin/bash"
        } else {
            "/bin/sh"
        };
        let argv = vec![shell.to_owned(), "-c".to_owned(), script.clone()];
        return (Program::Run(argv), "juju-exec".to_owned());
    }
    let bespoke = match task {
        Some((
            _,
            Task {
                kind: TaskKind::Action { name, .. },
                ..
            },
        )) => charm.join("actions").join(name),
        _ => charm.join("hooks").join(hook.name()),
    };
    let dispatch = charm.join("dispatch");
    let (path, how) = if dispatch.exists() {
        (dispatch, "hook dispatching script: dispatch")
    } else if bespoke.exists() {
        (bespoke, "explicit, bespoke hook script")
    } else {
        return (Program::Missing, "missing".to_owned());
    };
    let executable = fs::metadata(&path).is_ok_and(|m| m.permissions().mode() & 0o111 != 0);
    let text = path.to_string_lossy().into_owned();
    if executable {
        (Program::Run(vec![text]), how.to_owned())
    } else {
        (
            Program::Unusable(format!("fork/exec {text}: permission denied")),
            how.to_owned(),
        )
    }
}

fn in_pod(argv: Vec<String>, credentials: &Credentials) -> (Vec<String>, Option<String>) {
    let mut wrapped: Vec<String> = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--",
        "/bin/sh",
        "-c",
        IN_POD,
        "sh",
    ]
    .map(ToOwned::to_owned)
    .to_vec();
    wrapped.extend(argv);
    let stdin = format!(
        "{}\n{}\n{}",
        credentials.token, credentials.namespace, credentials.ca_crt
    );
    (wrapped, Some(stdin))
}

/// Whether this process may give the charm mounts of its own (root with the right to mount); asked
/// once per model and process.
fn private_mounts(model: &mut Model, dir: &Path) -> bool {
    if let Some(known) = model.namespaces {
        return known;
    }
    let argv = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--",
        "true",
    ];
    let env = [("PATH".to_owned(), model.options.agent_path.clone())].into();
    let spec = process::Spec {
        argv: argv.map(ToOwned::to_owned).to_vec(),
        env: &env,
        dir,
        stdin: None,
        limit: Duration::from_secs(10),
    };
    let possible = rustix::process::geteuid().is_root()
        && process::run(spec, |_, _| {}, |_, _| {}).is_ok_and(|ran| ran.end == End::Exit(0));
    model.namespaces = Some(possible);
    possible
}

fn unpack_charm(model: &mut Model, unit: &str) -> Result<(), ModelError> {
    let Some((app, _)) = split_unit(unit) else {
        return Ok(());
    };
    let Some(application) = model.state.applications.get(app) else {
        return Ok(());
    };
    let source = model
        .store
        .dir()
        .join("charms")
        .join(&application.charm_dir);
    let revision = application.charm_rev;
    let target = model.charm_dir(unit);
    let replace = || -> io::Result<()> {
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        archive::copy_tree(&source, &target)
    };
    replace().map_err(access(&target))?;
    if let Some(u) = model.state.unit_mut(unit) {
        u.uniter.charm_rev = Some(revision);
    }
    Ok(())
}

/// Gives a unit the application's current charm. After a pod restart start runs again; a forced
/// refresh of a unit in error changes the files and nothing else.
fn swap_charm(model: &mut Model, unit: &str) -> Result<(), ModelError> {
    unpack_charm(model, unit)?;
    if let Some(u) = model.state.unit_mut(unit).map(|u| &mut u.uniter) {
        if std::mem::take(&mut u.force_charm) {
            return Ok(());
        }
        if std::mem::take(&mut u.restart) {
            u.started = false;
            u.stopped = false;
        }
        u.upgrade = true;
        u.config_seen = None;
    }
    Ok(())
}

/// The directory with the tools' names, all links to the one `jujuc`.
fn tools_dir(model: &Model) -> Result<PathBuf, ModelError> {
    let dir = model.store.dir().join("tools");
    let jujuc = jujuc(model)?;
    let link = dir.join("is-leader");
    if fs::read_link(&link).is_ok_and(|target| target == jujuc) {
        return Ok(dir);
    }
    let make = || -> io::Result<()> {
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        for name in tools::names() {
            symlink(&jujuc, dir.join(name))?;
        }
        Ok(())
    };
    make().map_err(access(&dir))?;
    Ok(dir)
}

/// The `jujuc` program.
fn jujuc(model: &Model) -> Result<PathBuf, ModelError> {
    let beside = || {
        let exe = std::env::current_exe().ok()?;
        let dir = exe.parent()?;
        [Some(dir), dir.parent()]
            .into_iter()
            .flatten()
            .map(|d| d.join("jujuc"))
            .find(|p| p.exists())
    };
    let path = model.options.jujuc.clone().or_else(beside);
    let path = path.unwrap_or_else(|| PathBuf::from("jujuc"));
    path.canonicalize().map_err(|_| ModelError::NoTools(path))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |w, b| (w << 8) | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                let index = (word >> (18 - 6 * i)) & 63;
                out.push(char::from(ALPHABET[index as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

//! Taking one step of a unit agent: running the charm's program, keeping or dropping its writes.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::Model;
use crate::ModelError;
use crate::agent::context::ActionSaid;
use crate::agent::context::HookRun;
use crate::agent::context::Pending;
use crate::agent::environment;
use crate::agent::files;
use crate::agent::files::Program;
use crate::agent::outcome;
use crate::agent::outcome::COMMITTING;
use crate::agent::outcome::Verdict;
use crate::agent::pod;
use crate::agent::process;
use crate::agent::process::End;
use crate::agent::process::Ran;
use crate::agent::process::Stream;
use crate::agent::resolver::Step;
use crate::agent::server;
use crate::cloud::CloudError;
use crate::cloud::Credentials;
use crate::hook::Hook;
use crate::hook::RelationKind;
use crate::model::Fault;
use crate::model::Level;
use crate::model::random_hex;
use crate::model::status;
use crate::pebble;
use crate::record::HookRecord;
use crate::record::ToolCall;
use crate::state::Bag;
use crate::state::Task;
use crate::state::TaskKind;
use crate::state::split_unit;

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
                outcome::commit_hook(model, unit, &error.hook)?;
            }
            model.save()
        }
        Step::SwapCharm => {
            files::swap_charm(model, unit)?;
            model.save()
        }
        Step::Vanish => {
            model.vanish(unit)?;
            model.save()
        }
    }
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
        outcome::finish_task(model, *id, &ran, &verdict, said, &out, &err);
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
        wall_us: u64::try_from(ran.wall.as_micros()).unwrap_or(u64::MAX),
        cpu_us: ran.cpu_us,
        peak_rss_kib: ran.peak_rss_kib,
        calls,
    })?;
    outcome::conclude(model, unit, hook, &label, &how, &verdict)?;
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
        files::unpack_charm(model, unit)?;
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
    files::tools_dir(model)?;
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
    let tools = files::tools_dir(model)?;
    let (program, how) = files::program(&charm_dir, hook, task);
    let namespaced = matches!(credentials, Ok(Some(_))) && pod::private_mounts(model, &charm_dir);
    let limit = model.options.hook_limit;
    let socket = model.socket(unit);
    let containers_dir = model.agent_dir(unit).join("containers");
    let has_containers = model
        .state
        .applications
        .get(app)
        .is_some_and(|app| !app.charm.containers.is_empty());
    let up = model.state.unit(unit).into_iter();
    let up = up.flat_map(|unit| unit.containers.iter().filter(|(_, known)| known.up));
    let up: Vec<String> = up.map(|(name, _)| name.clone()).collect();
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
        containers: has_containers.then_some(containers_dir.as_path()),
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
    let mut finished = Finished {
        label: hook_run.label(),
        ran: Ran {
            end: End::Exit(0),
            wall: Duration::ZERO,
            peak_rss_kib: 0,
            cpu_us: 0,
        },
        verdict: Verdict::Done,
        said: ActionSaid::default(),
        calls: Vec::new(),
        out: Vec::new(),
        err: Vec::new(),
    };
    let (argv, stdin) = match launch(&hook_run, credentials, program, namespaced) {
        Ok(launch) => launch,
        Err(verdict) => {
            finished.verdict = verdict;
            return Ok((finished, how));
        }
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
        pebble::server::serve(&containers_dir, &up, &shared, || {
            process::run(spec, |stream, line| {
                let text = String::from_utf8_lossy(line);
                let (level, sink) = match stream {
                    Stream::Out => (Level::Debug, &mut finished.out),
                    Stream::Err => (Level::Warning, &mut finished.err),
                };
                lock().log_output(level, &text);
                sink.extend_from_slice(line);
                sink.push(b'\n');
            })
        })
    });
    let mut hook_run = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    match ran.and_then(|ran| ran).and_then(|ran| ran) {
        Ok(ran) => {
            finished.verdict = judge(&mut hook_run, &ran);
            finished.ran = ran;
        }
        Err(e) => finished.verdict = Verdict::Failed(format!("cannot run the charm: {e}")),
    }
    finished.said = hook_run.said;
    finished.calls = hook_run.calls;
    Ok((finished, how))
}

/// The command line and its input; or the verdict when there is nothing to start.
fn launch(
    run: &HookRun<'_>,
    credentials: Result<Option<Credentials>, CloudError>,
    program: Program,
    namespaced: bool,
) -> Result<(Vec<String>, Option<String>), Verdict> {
    let credentials = credentials.map_err(|e| Verdict::Failed(ModelError::Cloud(e).chain()))?;
    let argv = match program {
        Program::Run(argv) => argv,
        Program::Missing if matches!(run.hook, Hook::Task(_)) => {
            return Err(Verdict::Failed("action not implemented on unit".to_owned()));
        }
        Program::Missing => return Err(Verdict::Done),
        Program::Unusable(text) => return Err(Verdict::Failed(text)),
    };
    let Some(credentials) = credentials else {
        return Ok((argv, None));
    };
    if namespaced {
        return Ok(pod::in_pod(argv, &credentials));
    }
    let text = "cannot mount: the charm runs without its service account's files";
    run.model
        .log(&run.unit, Level::Warning, "juju.worker.uniter", text);
    Ok((argv, None))
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

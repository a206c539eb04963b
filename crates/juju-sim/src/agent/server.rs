//! The agent's socket: hook tools ask here.
//!
//! One request per connection, one JSON object per line. The tool's process reads standard input
//! only when the agent asks for it, as in Juju. Calls are carried out one at a time, but a call that
//! still waits for its input holds nobody up, so tools may be piped into each other.

use std::collections::BTreeMap;
use std::io;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Write as _;
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;
use std::thread::Scope;

use serde::Deserialize;
use serde::Serialize;

use crate::agent::context::HookRun;
use crate::record;
use crate::record::ToolCall;
use crate::tools;

/// What a tool's process sends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) context: String,
    pub(crate) dir: String,
    pub(crate) tool: String,
    pub(crate) args: Vec<String>,
}

/// What it gets back: a wish for standard input, or the result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reply {
    /// Send standard input as one JSON string.
    Stdin,
    /// The tool's outcome.
    Done(Outcome),
}

/// Exit code and output of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) code: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Serves hook tools at the abstract socket `@name` while `body` runs.
pub(crate) fn serve<R>(
    name: &str,
    run: &Mutex<HookRun<'_>>,
    body: impl FnOnce() -> R,
) -> io::Result<R> {
    let address = SocketAddr::from_abstract_name(name.trim_start_matches('@'))?;
    let listener = UnixListener::bind_addr(&address)?;
    let over = AtomicBool::new(false);
    let streams = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        scope.spawn(|| accept(scope, &listener, run, &over, &streams));
        let result = body();
        over.store(true, Ordering::SeqCst);
        let woken = UnixStream::connect_addr(&address).map(drop);
        for stream in streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            let stream: &UnixStream = stream;
            // Callers that are still connected are orphans of the hook.
            let _ = stream.shutdown(Shutdown::Both);
        }
        woken.map(|()| result)
    })
}

fn accept<'scope>(
    scope: &'scope Scope<'scope, '_>,
    listener: &'scope UnixListener,
    run: &'scope Mutex<HookRun<'_>>,
    over: &'scope AtomicBool,
    streams: &'scope Mutex<BTreeMap<usize, UnixStream>>,
) {
    for (number, stream) in listener.incoming().enumerate() {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if let Ok(copy) = stream.try_clone() {
            streams
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(number, copy);
        }
        scope.spawn(move || {
            // The caller sees a closed connection if this fails; nobody else is concerned.
            let _ = answer(&stream, run);
            let _ = stream.shutdown(Shutdown::Both);
            streams
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&number);
        });
    }
}

fn answer(stream: &UnixStream, run: &Mutex<HookRun<'_>>) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    let stdin = if tools::wants_stdin(&request.args) {
        send(stream, &Reply::Stdin)?;
        line.clear();
        lines.read_line(&mut line)?;
        Some(serde_json::from_str::<String>(&line)?)
    } else {
        None
    };
    let outcome = {
        let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = call(&mut run, &request, stdin.as_deref());
        let secret = request.tool.starts_with("secret-");
        run.calls.push(ToolCall {
            args: record::without_secrets(&request.tool, &request.args),
            tool: request.tool,
            stdin: stdin.map(|text| {
                if secret {
                    "[redacted]".to_owned()
                } else {
                    text
                }
            }),
            code: outcome.code,
        });
        outcome
    };
    send(stream, &Reply::Done(outcome))
}

fn call(run: &mut HookRun<'_>, request: &Request, stdin: Option<&str>) -> Outcome {
    if request.context != run.context_id {
        let text = format!(
            "bad request: expected context id {:?}, got {:?}",
            run.context_id, request.context
        );
        return Outcome {
            code: 1,
            stdout: String::new(),
            stderr: format!("ERROR {text}\n"),
        };
    }
    tools::call(run, &request.tool, &request.args, stdin, &request.dir)
}

fn send(mut stream: &UnixStream, reply: &Reply) -> io::Result<()> {
    let mut text = serde_json::to_vec(reply)?;
    text.push(b'\n');
    stream.write_all(&text)
}

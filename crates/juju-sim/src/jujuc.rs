//! The hook tools' process: forwards its command line to the unit agent and prints the answer.
//!
//! One program under many names; which tool it is follows from the name it was started by.

use std::io;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use crate::agent::server::Outcome;
use crate::agent::server::Reply;
use crate::agent::server::Request;

/// Whether a program name is that of a hook tool.
pub fn is_tool(program: &str) -> bool {
    crate::tools::names().any(|name| name == base_name(program))
}

/// Runs as the hook tool named by `args[0]`.
pub fn main(args: &[String]) -> ExitCode {
    let outcome = outcome(args).unwrap_or_else(|text| Outcome {
        code: 1,
        stdout: String::new(),
        stderr: format!("ERROR {text}\n"),
    });
    let printed = io::stderr()
        .write_all(outcome.stderr.as_bytes())
        .and_then(|()| io::stdout().write_all(outcome.stdout.as_bytes()))
        .and_then(|()| io::stdout().flush());
    ExitCode::from(if printed.is_ok() { outcome.code } else { 1 })
}

fn outcome(args: &[String]) -> Result<Outcome, String> {
    let tool = base_name(args.first().map_or("jujuc", String::as_str));
    let context = variable("JUJU_CONTEXT_ID")?;
    let socket = variable("JUJU_AGENT_SOCKET_ADDRESS")?;
    let dir = std::env::current_dir().map_err(|e| e.to_string())?;
    let request = Request {
        context,
        dir: dir.to_string_lossy().into_owned(),
        tool: tool.to_owned(),
        args: args.get(1..).unwrap_or_default().to_vec(),
    };
    ask(&socket, &request).map_err(|e| format!("connection to the unit agent failed: {e}"))
}

fn ask(socket: &str, request: &Request) -> io::Result<Outcome> {
    let stream = match socket.strip_prefix('@') {
        Some(name) => UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?,
        None => UnixStream::connect(socket)?,
    };
    send(&stream, request)?;
    let mut lines = BufReader::new(&stream);
    loop {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        match serde_json::from_str(&line)? {
            Reply::Done(outcome) => return Ok(outcome),
            Reply::Stdin => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text)?;
                send(&stream, &text)?;
            }
        }
    }
}

fn send(mut stream: &UnixStream, value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    stream.write_all(&text)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a hook tool finds its agent in the environment"
)]
fn variable(name: &str) -> Result<String, String> {
    std::env::var(name)
        .ok()
        .filter(|v| !v.is_empty())
        .ok_or_else(|| format!("{name} not set"))
}

fn base_name(program: &str) -> &str {
    Path::new(program)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or(program)
}

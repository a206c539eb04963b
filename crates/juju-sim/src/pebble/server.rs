//! The sockets of a unit's containers, while a hook runs.
//!
//! A request per connection, as far as Pebble's protocol goes that clients need without files and
//! commands in the container.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Answer;
use crate::agent::context::HookRun;

/// The longest body read.
const MAX_BODY: usize = 16 << 20;

/// A caller that says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves the containers in `dir` whose Pebble answers, while `body` runs.
pub(crate) fn serve<R>(
    dir: &Path,
    names: &[String],
    run: &Mutex<HookRun<'_>>,
    body: impl FnOnce() -> R,
) -> io::Result<R> {
    let mut listeners = Vec::new();
    for name in names {
        listeners.push((name, listen(&dir.join(name))?));
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (name, (listener, _)) in &listeners {
            let over = &over;
            scope.spawn(move || {
                for stream in listener.incoming() {
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    // A caller that goes away concerns nobody else.
                    let _ = stream.and_then(|stream| talk(&stream, name, run));
                }
            });
        }
        let result = body();
        over.store(true, Ordering::SeqCst);
        for (_, (_, socket)) in &listeners {
            UnixStream::connect(socket.short())?;
            fs::remove_file(&socket.path)?;
        }
        Ok(result)
    })
}

/// A socket's path, and the directory it is reached through whatever the path's length.
struct Socket {
    path: PathBuf,
    dir: File,
}

impl Socket {
    /// The kernel takes no more than 107 bytes.
    fn short(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/self/fd/{}/pebble.socket",
            self.dir.as_raw_fd()
        ))
    }
}

fn listen(dir: &Path) -> io::Result<(UnixListener, Socket)> {
    fs::create_dir_all(dir)?;
    let socket = Socket {
        path: dir.join("pebble.socket"),
        dir: File::open(dir)?,
    };
    match fs::remove_file(&socket.path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    Ok((UnixListener::bind(socket.short())?, socket))
}

fn talk(stream: &UnixStream, name: &str, run: &Mutex<HookRun<'_>>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut from = BufReader::new(stream);
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(());
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let Some((key, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if key.eq_ignore_ascii_case("content-length") {
            length = value
                .trim()
                .parse::<usize>()
                .unwrap_or_default()
                .min(MAX_BODY);
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = {
        let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
        let unit = run.unit.clone();
        let unit = run.model.state.unit_mut(&unit);
        match unit.and_then(|unit| unit.containers.get_mut(name)) {
            Some(container) => container.answer(&method, &target, &body),
            None => Answer::Refused(500, "no such container".into()),
        }
    };
    reply(stream, &answer)
}

fn reply(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let (code, word, document) = match answer {
        Answer::Sync(result) => (
            200,
            "OK",
            json!({"type": "sync", "status-code": 200, "status": "OK", "result": result}),
        ),
        Answer::Async(id) => (
            202,
            "Accepted",
            json!({
                "type": "async", "status-code": 202, "status": "Accepted",
                "change": id.to_string(), "result": null,
            }),
        ),
        Answer::Refused(code, message) => (
            *code,
            "Error",
            json!({
                "type": "error", "status-code": code, "status": "Error",
                "result": {"message": message},
            }),
        ),
    };
    let text = document.to_string();
    write!(
        stream,
        "HTTP/1.1 {code} {word}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )
}

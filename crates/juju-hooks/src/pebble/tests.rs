//! The client against a socket that answers what Pebble would.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::thread::{self, JoinHandle};

use super::*;

/// Answers as many requests as there are answers, and gives what it was asked.
fn played(dir: &Path, answers: &'static [&'static str]) -> (Pebble, JoinHandle<Vec<String>>) {
    let socket = dir.join("pebble.socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let asked = thread::spawn(move || {
        let answer = |answer: &&str| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                let read = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request);
                let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
                let length = head.split("Content-Length: ").nth(1);
                let length = length.and_then(|rest| rest.lines().next()?.parse::<usize>().ok());
                if length == Some(body.len()) {
                    break;
                }
            }
            stream.write_all(answer.as_bytes()).unwrap();
            let text = String::from_utf8(request).unwrap();
            let first = text.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
            let body = text.split_once("\r\n\r\n").unwrap().1;
            format!("{first} {body}").trim_end().to_owned()
        };
        answers.iter().map(answer).collect()
    });
    (Pebble::at(socket), asked)
}

#[test]
fn a_layer_is_added_and_the_plan_made_so() {
    let dir = tempfile::tempdir().unwrap();
    let (pebble, asked) = played(
        dir.path(),
        &[
            "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n{\"type\":\"sync\",\"status-code\":200,\"result\":{}}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\n{\"type\":\"sync\",\"result\":true\r\n1\r\n}\r\n0\r\n\r\n",
            "HTTP/1.1 202 Accepted\r\n\r\n{\"type\":\"async\",\"status-code\":202,\"change\":\"7\",\"result\":null}",
            "HTTP/1.1 200 OK\r\n\r\n{\"type\":\"sync\",\"result\":{\"id\":\"7\",\"ready\":true}}",
        ],
    );
    assert!(pebble.can_connect());
    let layer = json!({"services": {"web": {"override": "replace", "command": "web"}}});
    pebble.add_layer("meshy", &layer).unwrap();
    pebble.replan().unwrap();
    let asked = asked.join().unwrap();
    assert_eq!(asked[0], "GET /v1/system-info");
    assert!(asked[1].starts_with("POST /v1/layers {\"action\":\"add\",\"combine\":true"));
    assert_eq!(
        asked[2..],
        [
            "POST /v1/services {\"action\":\"replan\",\"services\":[]}",
            "GET /v1/changes/7/wait?timeout=5s"
        ]
    );
}

#[test]
fn what_fails_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (pebble, asked) = played(
        dir.path(),
        &[
            "HTTP/1.1 400 Bad Request\r\n\r\n{\"type\":\"error\",\"status-code\":400,\"result\":{\"message\":\"no such service\"}}",
            "HTTP/1.1 202 Accepted\r\n\r\n{\"type\":\"async\",\"change\":\"8\"}",
            "HTTP/1.1 200 OK\r\n\r\n{\"type\":\"sync\",\"result\":{\"ready\":true,\"err\":\"cannot start\"}}",
            "HTTP/1.1 200 OK\r\n\r\n[]",
        ],
    );
    let words = |error: PebbleError| error.to_string();
    assert_eq!(
        words(pebble.services().unwrap_err()),
        "pebble refuses: no such service"
    );
    assert_eq!(
        words(pebble.restart(&["web"]).unwrap_err()),
        "pebble's change 8 failed: cannot start"
    );
    assert!(matches!(pebble.services(), Err(PebbleError::Answer(_))));
    asked.join().unwrap();
    let none = Pebble::at(dir.path().join("none"));
    assert!(!none.can_connect());
    assert!(matches!(
        none.services(),
        Err(PebbleError::Unreachable { .. })
    ));
}

const BEGUN: &str = "HTTP/1.1 202 Accepted\r\n\r\n{\"type\":\"async\",\"change\":\"9\"}";
const GOES_ON: &str = "HTTP/1.1 504 Gateway Timeout\r\n\r\n{\"type\":\"error\",\"status-code\":504,\"result\":{\"message\":\"timed out waiting for change after 5s\"}}";

#[test]
fn a_change_that_goes_on_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (pebble, asked) = played(
        dir.path(),
        &[
            BEGUN,
            GOES_ON,
            GOES_ON,
            "HTTP/1.1 200 OK\r\n\r\n{\"type\":\"sync\",\"result\":{\"ready\":true}}",
        ],
    );
    pebble.stop(&["web"]).unwrap();
    let asked = asked.join().unwrap();
    assert_eq!(asked[1..], ["GET /v1/changes/9/wait?timeout=5s"; 3]);
}

#[test]
fn a_change_that_never_ends_fails_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let waits: &[&str] = &[BEGUN, GOES_ON, GOES_ON, GOES_ON, GOES_ON, GOES_ON, GOES_ON];
    let (pebble, asked) = played(dir.path(), waits);
    assert_eq!(
        pebble.replan().unwrap_err().to_string(),
        "pebble's change 9 failed: not done in time"
    );
    asked.join().unwrap();
}

#[test]
fn an_answer_that_is_no_http_is_unreadable_and_not_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let answers: &[&str] = &[
        "hello\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nlots\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
    ];
    let (pebble, asked) = played(dir.path(), answers);
    for reason in ["no HTTP answer", "bad chunk", "the answer is too long"] {
        assert_eq!(
            pebble.services().unwrap_err().to_string(),
            format!("unreadable answer of pebble: {reason}")
        );
    }
    asked.join().unwrap();
}

#[test]
fn services_are_listed_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (pebble, asked) = played(
        dir.path(),
        &[
            "HTTP/1.1 200 OK\r\n\r\n{\"type\":\"sync\",\"result\":[{\"name\":\"web\",\"startup\":\"enabled\",\"current\":\"active\"}]}",
        ],
    );
    assert_eq!(pebble.services().unwrap()["web"].current, "active");
    asked.join().unwrap();
}

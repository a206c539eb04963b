//! A client for plain HTTP/1.1, small enough to send exactly the bytes a test means: no header is
//! added but `Host` and `Connection: close`, and none is hidden from the answer.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How long a request may take, in all.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Headers, names in lower case; of a repeated one the last.
    pub headers: BTreeMap<String, String>,
    /// The body, which must be UTF-8.
    pub body: String,
}

impl Response {
    /// The body as JSON.
    ///
    /// # Errors
    /// A body that is no JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.body).with_context(|| format!("not JSON: {}", self.body))
    }
}

/// Sends one GET with `headers` to `path` of the server at `address`.
///
/// # Errors
/// No connection, no answer in ten seconds, or an answer that is not HTTP.
pub fn get(
    address: SocketAddr,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Response> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)
        .with_context(|| format!("connect to {address}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(name);
        request.push_str(": ");
        request.push_str(value);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    let mut block = [0; 16 * 1024];
    // The end of the answer is in the answer: a server may keep the connection open for a while
    // after it.
    while !is_whole(&bytes) {
        match stream.read(&mut block).context("read the answer")? {
            0 => break,
            n => bytes.extend_from_slice(&block[..n]),
        }
    }
    parse(&bytes)
}

/// Whether headers and body are there, as far as the headers tell how long the body is.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let body = &bytes[end + 4..];
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    match length.and_then(|text| text.trim().parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => head.contains("transfer-encoding: chunked") && body.ends_with(b"0\r\n\r\n"),
    }
}

fn parse(bytes: &[u8]) -> Result<Response> {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        bail!("no end of headers in {} bytes", bytes.len());
    };
    let head = std::str::from_utf8(&bytes[..end]).context("headers")?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .context("no status line")?;
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let chunked = headers
        .get("transfer-encoding")
        .is_some_and(|v| v == "chunked");
    let body = if chunked {
        unchunk(rest)?
    } else {
        rest.to_vec()
    };
    Ok(Response {
        status,
        headers,
        body: String::from_utf8(body).context("body")?,
    })
}

fn unchunk(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest
            .windows(2)
            .position(|w| w == b"\r\n")
            .context("chunk without a size")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end])?.trim(), 16)
            .context("chunk size")?;
        let from = end + 2;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(rest.get(from..from + size).context("short chunk")?);
        rest = rest.get(from + size + 2..).context("short chunk")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_a_length_is_read_to_its_end() {
        let answer = parse(b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "hi"));
        assert_eq!(answer.headers["x-a"], "b");
    }

    #[test]
    fn a_chunked_answer_is_put_together() {
        let bytes =
            b"HTTP/1.1 403 F\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        let answer = parse(bytes).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (403, "abc"));
    }

    #[test]
    fn the_end_of_an_answer_is_known_from_its_headers() {
        assert!(is_whole(b"HTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n"));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh"));
        assert!(is_whole(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\n"));
    }

    #[test]
    fn something_else_is_an_error() {
        assert!(parse(b"hello").is_err());
        assert!(parse(b"HTTP/1.1 x\r\n\r\n").is_err());
    }
}

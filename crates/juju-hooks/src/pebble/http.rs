//! One HTTP/1.1 request over a Unix socket. Pebble is Go's server: it gives a length, or chunks.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::TIMEOUT;

/// The largest answer taken.
const MAX_BODY: u64 = 16 << 20;

/// The body of the answer, whatever its status: Pebble says in the body what went wrong.
pub(super) fn call(
    socket: &Path,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    answer(BufReader::new(stream))
}

fn answer(mut from: impl BufRead) -> io::Result<Vec<u8>> {
    let status = line(&mut from)?;
    if !status.starts_with("HTTP/1.") {
        return Err(invalid("no HTTP answer"));
    }
    let (mut length, mut chunked) = (None, false);
    loop {
        let header = line(&mut from)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<u64>().ok(),
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let size = line(&mut from)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| invalid("bad chunk"))?;
            if size == 0 {
                return Ok(body);
            }
            take(&mut from, size, &mut body)?;
            line(&mut from)?;
        }
    }
    match length {
        Some(length) => take(&mut from, length, &mut body)?,
        None => drop(from.take(MAX_BODY).read_to_end(&mut body)?),
    }
    Ok(body)
}

fn take(from: &mut impl BufRead, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
    if length.saturating_add(into.len() as u64) > MAX_BODY {
        return Err(invalid("the answer is too long"));
    }
    let read = from.take(length).read_to_end(into)?;
    if read as u64 == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    const LONGEST: u64 = 8192;
    let mut text = String::new();
    from.take(LONGEST).read_line(&mut text)?;
    if !text.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

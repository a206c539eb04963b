//! All hook tools in one program; started through links that bear their names.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    juju_sim::jujuc::main(&args)
}

//! The charm's `dispatch`.

use std::process::ExitCode;

use greeter::Greeter;
use juju_charm::NoWorld;

fn main() -> ExitCode {
    juju_charm::run::<Greeter>(NoWorld::connect)
}

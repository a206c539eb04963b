//! Juju's rules, each driven by a charm of a few lines of shell.

#[cfg(test)]
mod actions;
#[cfg(test)]
mod command;
#[cfg(test)]
mod containers;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod issues;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod offers;
#[cfg(test)]
mod order;
#[cfg(test)]
mod pods;
#[cfg(test)]
mod refresh;
#[cfg(test)]
mod relations;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod told;
#[cfg(test)]
mod writes;

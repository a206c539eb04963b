//! The unit agent: what runs next, how it is run, what is kept of it.

pub(crate) mod commit;
pub(crate) mod context;
pub(crate) mod environment;
pub(crate) mod files;
pub(crate) mod outcome;
pub(crate) mod pod;
pub(crate) mod process;
pub(crate) mod resolver;
pub(crate) mod runner;
pub(crate) mod server;

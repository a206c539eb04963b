//! A Juju model that runs real charm processes.

pub mod cloud;

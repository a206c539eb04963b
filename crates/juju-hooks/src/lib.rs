//! Everything Juju says and hears, as types; hook tools behind one trait.

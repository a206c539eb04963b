//! How one release follows another: where it goes, what is remembered of what ran, what has to hold
//! first, and who judges it afterwards.
//!
//! `choice` takes the payload whose turn it is; `target` decides (pure) which revision the release
//! goes to and who answers for the default; `record` is what the cluster remembers of each revision;
//! `assemble` puts together what is to run (pure); `facts` reads what an upgrade rests on and `checks`
//! turns it into findings (pure); `images` and `proof` are the pods by which images and injection are
//! proven (pure); `flow` is the order in which the cluster is asked and written.

pub mod assemble;
pub mod checks;
pub mod choice;
pub mod facts;
pub mod flow;
pub mod images;
pub mod proof;
pub mod record;
pub mod target;

//! What must hold before, while and after one release takes the place of another.
//!
//! Each check is a function from what was read to [`Finding`]s; which of them keep an upgrade from
//! starting is [`Finding::blocks`]. Refusing a wrong upgrade costs a command, doing one costs traffic.

pub mod admission;
pub mod certificate;
pub mod definitions;
pub mod disruption;
pub mod finding;
pub mod promotion;
pub mod rights;
pub mod rollout;
pub mod skew;
pub mod version;

pub use finding::{Code, Finding};
pub use promotion::Holder;
pub use rollout::Rollout;
pub use skew::Way;
pub use version::Minor;

//! Comparison with other implementations: helm, istioctl, the Python charm libraries.

pub mod charm_files;
pub mod helm;
pub mod pairs;
pub mod peers;
pub mod played_istiod;
pub mod venv;

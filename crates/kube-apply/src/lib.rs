//! Observe, plan, server-side apply, prune, wait.

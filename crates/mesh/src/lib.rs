//! The Istio domain, pure: revisions, discovery, webhooks, routes, auth, ownership.

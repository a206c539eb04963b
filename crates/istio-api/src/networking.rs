//! `networking.istio.io`: `Gateway`, `VirtualService`, `DestinationRule`, `EnvoyFilter`.
//!
//! Each struct names the CRD path it stands for. Durations are Go/protobuf duration strings
//! (`"10s"`), as the API has them.

mod destination_rule;
mod envoy_filter;
mod gateway;
mod virtual_service;

pub use destination_rule::{
    ClientTls, ClientTlsMode, ConnectionPool, ConnectionPoolHttp, DestinationRule,
    DestinationRuleSpec, Subset, TrafficPolicy,
};
pub use envoy_filter::{
    ApplyTo, EnvoyConfigPatch, EnvoyFilter, EnvoyFilterSpec, EnvoyPatch, PatchContext,
    PatchOperation, WorkloadSelector,
};
pub use gateway::{Gateway, GatewaySpec, Port, Server, ServerTls, ServerTlsMode};
pub use virtual_service::{
    CorsPolicy, Destination, DirectResponse, HeaderOperations, Headers, HttpBody, HttpMatch,
    HttpRedirect, HttpRetry, HttpRewrite, HttpRoute, L4Match, PortSelector, RouteDestination,
    StringMatch, TcpRoute, TlsMatch, TlsRoute, UriRegexRewrite, VirtualService, VirtualServiceSpec,
};

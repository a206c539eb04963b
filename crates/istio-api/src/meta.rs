//! What every custom object has in common: metadata and the way to JSON.

use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::kinds::{self, Kind};

/// Kubernetes' object metadata.
pub type ObjectMeta = v1::ObjectMeta;

/// `group/version`, or just `version` for the core group (`""`).
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The inverse of [`api_version`]: `(group, version)`.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// A typed custom object: metadata plus a `spec`.
pub trait CustomObject {
    /// The `spec` of the object.
    type Spec: Serialize;
    /// API group, as in `networking.istio.io`.
    const GROUP: &'static str;
    /// Kind, as in `VirtualService`.
    const KIND: &'static str;

    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The object's `spec`.
    fn spec(&self) -> &Self::Spec;

    /// The row of this kind in [`kinds::TABLE`].
    fn kind() -> Option<&'static Kind> {
        kinds::lookup(Self::GROUP, Self::KIND)
    }

    /// The object in the newest version of its kind that we know.
    fn to_object(&self) -> Value {
        self.to_object_as(Self::kind().map_or("v1", Kind::newest))
    }

    /// The object in `version` (a cluster with an older Istio serves `v1beta1` only; the schemas of
    /// all served versions are the same).
    fn to_object_as(&self, version: &str) -> Value {
        let mut object = Map::new();
        object.insert(
            "apiVersion".to_owned(),
            api_version(Self::GROUP, version).into(),
        );
        object.insert("kind".to_owned(), Self::KIND.into());
        object.insert("metadata".to_owned(), json(self.metadata()));
        object.insert("spec".to_owned(), json(self.spec()));
        Value::Object(object)
    }
}

/// Our structs have string keys and no fallible `Serialize`, so this cannot fail; should it ever,
/// the API server refuses the `null` by name.
fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// Declares the struct of a custom object and its [`CustomObject`] implementation.
macro_rules! custom_object {
    ($(#[$doc:meta])* $kind:ident, $group:literal, $spec:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $kind {
            /// Name, namespace, labels, annotations.
            #[serde(default)]
            pub metadata: $crate::ObjectMeta,
            /// `spec`.
            #[serde(default)]
            pub spec: $spec,
        }

        impl $kind {
            /// An object with a name and a namespace and nothing else in its metadata.
            pub fn new(namespace: &str, name: &str, spec: $spec) -> Self {
                Self {
                    metadata: $crate::ObjectMeta {
                        name: Some(name.to_owned()),
                        namespace: Some(namespace.to_owned()),
                        ..$crate::ObjectMeta::default()
                    },
                    spec,
                }
            }
        }

        impl $crate::CustomObject for $kind {
            type Spec = $spec;
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($kind);

            fn metadata(&self) -> &$crate::ObjectMeta {
                &self.metadata
            }

            fn spec(&self) -> &$spec {
                &self.spec
            }
        }
    };
}
pub(crate) use custom_object;

/// Declares a closed set of names that the API spells in `SCREAMING_SNAKE_CASE`. Names that newer
/// servers may add are read as `Unknown`, so a live object never fails to parse.
macro_rules! api_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
            /// A value this version does not know. Only ever read, never written.
            #[serde(other)]
            Unknown,
        }
    };
}
pub(crate) use api_enum;

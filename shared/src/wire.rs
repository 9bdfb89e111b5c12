//! How objects are written and read: fields in camel case, empty ones left out, `null` and unknown fields tolerated.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::NodeSelector,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use serde::{Deserialize, Deserializer};

use crate::quantity::Quantity;

/// Whether a field is left out when it is written. Numbers are always written; text, lists, maps and options are left
/// out when empty, a boolean when it is false.
pub trait Absent {
    /// True: do not write it.
    fn absent(&self) -> bool;
}

impl<T> Absent for Option<T> {
    fn absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Absent for Vec<T> {
    fn absent(&self) -> bool {
        self.is_empty()
    }
}

impl<K, V> Absent for BTreeMap<K, V> {
    fn absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for String {
    fn absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for bool {
    fn absent(&self) -> bool {
        !self
    }
}

macro_rules! always_written {
    ($($type:ty),*) => { $(impl Absent for $type { fn absent(&self) -> bool { false } })* };
}
always_written!(
    i32,
    i64,
    u32,
    u64,
    Quantity,
    ObjectMeta,
    LabelSelector,
    NodeSelector,
    serde_json::Value
);

/// `null` reads as the field left out, as the reference server reads it.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Structs as they go over the wire. Every field may be left out on reading; required ones are validation's matter, so
/// that the answer can name the field.
macro_rules! wire {
    ($(
        $(#[$meta:meta])*
        pub struct $Name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty ),* $(,)?
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $Name {
            $(
                $(#[$field_meta])*
                #[serde(
                    skip_serializing_if = "crate::wire::Absent::absent",
                    deserialize_with = "crate::wire::null_as_default"
                )]
                pub $field: $type,
            )*
        }

        impl crate::wire::Absent for $Name {
            fn absent(&self) -> bool {
                false
            }
        }
    )* };
}
pub(crate) use wire;

/// A text with known values. Others are kept as they are, and refused by validation, so that reading never fails over
/// a value that a later version knows.
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        pub enum $Name:ident {
            $( $(#[$variant_meta:meta])* $Variant:ident = $text:literal ),* $(,)?
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $( $(#[$variant_meta])* $Variant, )*
            /// Anything else, as it was read.
            Other(String),
        }

        impl $Name {
            /// The known values, as they are written.
            pub const KNOWN: &[&str] = &[$($text),*];

            /// As it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$Variant => $text, )*
                    Self::Other(text) => text,
                }
            }

            /// Whether it is one of [`Self::KNOWN`].
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }
        }

        impl From<&str> for $Name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$Variant, )*
                    _ => Self::Other(text.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Ok(Self::from(text.as_ref()))
            }
        }
    )* };
}
pub(crate) use words;

/// A whole object: `apiVersion` and `kind` are written, and not looked at on reading.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $Kind:ident, $plural:literal in $group:literal / $version:literal, $Scope:ident, $Spec:ty $(, $Status:ty)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $Kind {
            /// Name, namespace, labels and what the server keeps.
            #[serde(deserialize_with = "crate::wire::null_as_default")]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What is wanted.
            #[serde(deserialize_with = "crate::wire::null_as_default")]
            pub spec: $Spec,
            $(
                /// What was observed.
                #[serde(deserialize_with = "crate::wire::null_as_default")]
                pub status: Option<$Status>,
            )?
        }

        impl $Kind {
            /// `group/version`.
            pub const API_VERSION: &str = concat!($group, "/", $version);
            /// The kind's name.
            pub const KIND: &str = stringify!($Kind);

            /// A new object of this name, with this spec.
            pub fn new(name: &str, spec: $Spec) -> Self {
                let mut object = Self { spec, ..Self::default() };
                object.metadata.name = Some(name.to_owned());
                object
            }

            /// `metadata.name`, empty when it has none.
            pub fn name(&self) -> &str {
                self.metadata.name.as_deref().unwrap_or_default()
            }

            /// `metadata.namespace`, empty when it has none.
            pub fn namespace(&self) -> &str {
                self.metadata.namespace.as_deref().unwrap_or_default()
            }
        }

        impl serde::Serialize for $Kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut object = serializer.serialize_struct(Self::KIND, 5)?;
                object.serialize_field("apiVersion", Self::API_VERSION)?;
                object.serialize_field("kind", Self::KIND)?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                $(
                    let status: &Option<$Status> = &self.status;
                    if let Some(status) = status {
                        object.serialize_field("status", status)?;
                    }
                )?
                object.end()
            }
        }

        impl kube_core::Resource for $Kind {
            type DynamicType = ();
            type Scope = kube_core::$Scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                Self::KIND.into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(crate) use object;

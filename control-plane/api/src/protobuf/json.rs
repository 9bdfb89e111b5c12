//! Protobuf fields in Kubernetes' JSON form: what is empty is left out, bytes are base64, times are RFC 3339.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use k8s_pb::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde_json::{Map, Value};

/// A value of a field; `None` is left out.
pub(super) trait Json {
    fn json(&self) -> Option<Value>;
}

/// Makes a message the object of the named fields.
macro_rules! message {
    ($type:path { $($field:ident: $name:literal),* $(,)? }) => {
        impl $crate::protobuf::json::Json for $type {
            fn json(&self) -> Option<::serde_json::Value> {
                let mut fields = ::serde_json::Map::new();
                $(
                    if let Some(value) = $crate::protobuf::json::Json::json(&self.$field) {
                        fields.insert($name.into(), value);
                    }
                )*
                Some(::serde_json::Value::Object(fields))
            }
        }
    };
}
pub(super) use message;

/// Strings that are written although they are empty come from fields that are left out when empty.
impl Json for String {
    fn json(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.as_str().into())
    }
}

/// Booleans and numbers come from pointers: there when written.
impl Json for bool {
    fn json(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl Json for i32 {
    fn json(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl Json for i64 {
    fn json(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl Json for Vec<u8> {
    fn json(&self) -> Option<Value> {
        Some(STANDARD.encode(self).into())
    }
}

impl<T: Json> Json for Option<T> {
    fn json(&self) -> Option<Value> {
        self.as_ref()?.json()
    }
}

/// A list of messages or strings, whose elements are there even when they are empty.
macro_rules! list {
    ($($type:path),* $(,)?) => {
        $(
            impl $crate::protobuf::json::Json for Vec<$type> {
                fn json(&self) -> Option<::serde_json::Value> {
                    let items = self
                        .iter()
                        .map(|item| $crate::protobuf::json::Json::json(item).unwrap_or_else(|| "".into()))
                        .collect::<Vec<_>>();
                    (!items.is_empty()).then(|| items.into())
                }
            }
        )*
    };
}
pub(super) use list;

list!(String);

impl Json for BTreeMap<String, String> {
    fn json(&self) -> Option<Value> {
        let fields = self
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect::<Map<_, _>>();
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

impl Json for BTreeMap<String, Vec<u8>> {
    fn json(&self) -> Option<Value> {
        let fields = self
            .iter()
            .map(|(name, value)| (name.clone(), STANDARD.encode(value).into()))
            .collect::<Map<_, _>>();
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

/// A moment; the zero time, and what no calendar has, is none.
fn moment(seconds: Option<i64>, nanos: Option<i32>) -> Option<Timestamp> {
    let (seconds, nanos) = (seconds.unwrap_or_default(), nanos.unwrap_or_default());
    if (seconds, nanos) == (0, 0) {
        return None;
    }
    Timestamp::new(seconds, nanos).ok()
}

impl Json for Time {
    fn json(&self) -> Option<Value> {
        let time = moment(self.seconds, self.nanos)?;
        Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into())
    }
}

impl Json for MicroTime {
    fn json(&self) -> Option<Value> {
        let time = moment(self.seconds, self.nanos)?;
        Some(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into())
    }
}

//! Types that write their JSON by hand say here what it looks like; the others derive it. What comes out is JSON Schema
//! 2020-12, as OpenAPI 3.1 has it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::duration::HumanDuration;
use crate::patch::PatchDraft;
use crate::revision::Revision;
use crate::subscription::Secret;
use crate::time::Timestamp;

/// Decimal numbers with a unit each, one after the other.
pub const DURATION: &str = "^(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u{b5}s|\u{3bc}s|ms|s|m|h|d))+$";

/// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`, in any case.
pub const METHOD: &str =
    "^([Gg][Ee][Tt]|[Pp][Oo][Ss][Tt]|[Pp][Uu][Tt]|[Pp][Aa][Tt][Cc][Hh]|[Dd][Ee][Ll][Ee][Tt][Ee])$";

/// `whsec_` and padded base64 of 24 to 64 bytes.
const SECRET: &str = "^whsec_(([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/][AQgw]==)?|\
    ([A-Za-z0-9+/]{4}){8,20}[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$";

/// Headers by name, with a list of values each.
pub(crate) fn headers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "propertyNames": {"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"},
        "additionalProperties": {
            "type": "array",
            "items": {"type": "string", "pattern": "^[\\t -~]*$", "maxLength": 8192},
        },
    })
}

macro_rules! schema {
    ($type:ty, $name:literal, $($json:tt)+) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($json)+)
            }
        }
    };
}

schema!(HumanDuration, "Duration", {
    "type": "string",
    "format": "go-duration",
    "pattern": DURATION,
    "description": "A duration: decimal numbers with a unit each (`ns`, `us`, `ms`, `s`, `m`, `h`, `d`), which add up. \
        At most 106751d.",
    "examples": ["15s", "300ms", "1m30s"],
});

schema!(Timestamp, "Time", {
    "type": "string",
    "format": "date-time",
    "description": "A moment, RFC 3339. Flare writes UTC with milliseconds and reads any zone.",
    "examples": ["2026-11-15T08:30:00.000Z"],
});

schema!(Revision, "Revision", {
    "type": ["integer", "string"],
    "description": "How new a state of a document is, as the origin wrote it: an integer, or the text of a date.",
    "examples": [7, "2026-11-15T08:30:00Z"],
});

schema!(Secret, "Secret", {
    "type": "string",
    "pattern": SECRET,
    "format": "webhook-secret",
    "description": "What signs notifications, by Standard Webhooks 1.0: `whsec_` and the base64, padded, of 24 to 64 bytes.",
    "examples": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
});

schema!(PatchDraft, "Patch", {
    "anyOf": [{"type": "string", "enum": ["merge", "json"]}, {"type": "boolean"}],
    "description": "`merge`: JSON Merge Patch (RFC 7396). `json`: JSON Patch (RFC 6902). `true` is `merge`.",
});

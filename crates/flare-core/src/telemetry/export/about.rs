//! Who sends: the attributes of this node, the same in every message.

use crate::config::{ServiceName, TelemetryConfig};
use crate::protobuf::Message;
use crate::{door, version};

/// This node, as a collector is told of it.
pub struct About {
    attributes: Vec<(String, String)>,
}

impl About {
    /// As configured; the instance is another one in every process.
    pub fn new(config: &TelemetryConfig) -> About {
        let mut attributes: Vec<(String, String)> = vec![
            ("service.name".into(), config.service_name.as_str().into()),
            ("service.version".into(), version::VERSION.into()),
            ("service.instance.id".into(), door::fresh_id("flare")),
        ];
        for (name, value) in config.resource_attributes.iter() {
            match attributes.iter_mut().find(|(known, _)| known == name) {
                // A name that is given as such goes before one among the attributes.
                Some((known, _))
                    if known == "service.name" && config.service_name != ServiceName::flare() => {}
                Some((_, known)) => *known = value.to_owned(),
                None => attributes.push((name.to_owned(), value.to_owned())),
            }
        }
        About { attributes }
    }

    /// Fills a `Resource`.
    pub fn resource(&self, message: &mut Message) {
        self.attributes.iter().for_each(|(name, value)| attribute(message, 1, name, value));
    }

    /// Fills an `InstrumentationScope`.
    pub fn scope(&self, message: &mut Message) {
        message.bytes(1, "flare").bytes(2, version::VERSION);
    }
}

/// An attribute with a text, in the field for attributes of a message.
pub fn attribute(message: &mut Message, field: u32, name: &str, value: &str) {
    message.message(field, |pair| {
        pair.bytes(1, name).message(2, |any| {
            any.chosen_bytes(1, value);
        });
    });
}

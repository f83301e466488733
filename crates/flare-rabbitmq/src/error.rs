//! What the client's errors mean for a consumer or a producer.

use flare_provider::bridge::{BridgeError, BridgeErrorKind};
use lapin::ErrorKind;
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};

/// What follows from an error. `otherwise` is for those that say nothing but that the connection is not what it was.
pub fn kind(error: &lapin::Error, otherwise: BridgeErrorKind) -> BridgeErrorKind {
    match error.kind() {
        ErrorKind::ProtocolError(said) => match said.kind() {
            AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => BridgeErrorKind::Missing,
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED | AMQPSoftError::PRECONDITIONFAILED)
            | AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED) => BridgeErrorKind::Refused,
            _ => otherwise,
        },
        ErrorKind::ChannelsLimitReached => BridgeErrorKind::Unavailable,
        _ => otherwise,
    }
}

/// The same with the words of the client, which never have credentials in them.
pub fn bridge_error(error: lapin::Error, otherwise: BridgeErrorKind, what: &str) -> BridgeError {
    BridgeError::new(kind(&error, otherwise), format!("{what}: {error}")).because(error)
}

//! RabbitMQ, as the tests of its engine start, fill and read it.

#![allow(dead_code, reason = "the tests of the engine use all of it")]

#[path = "../../../flare-rabbitmq/tests/rabbitmq/outside.rs"]
pub mod outside;
#[path = "../../../flare-rabbitmq/tests/rabbitmq/server.rs"]
pub mod server;

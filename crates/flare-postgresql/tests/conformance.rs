//! The behaviours that every engine has to show, over schemas of their own in a real server.

mod common;

use async_trait::async_trait;
use flare_postgresql::{Options, Postgresql};
use flare_provider::Store;
use flare_provider::conformance::{Factory, Instance};
use flare_provider::memory::Memory;

flare_provider::conformance!(postgresql, super::Schemas);

struct Schemas;

/// An open store.
struct Open {
    postgresql: Postgresql,
    name: String,
    options: Options,
}

impl Open {
    fn over(options: Options) -> Open {
        let (postgresql, name) = common::open(&options);
        Open { postgresql, name, options }
    }
}

#[async_trait]
impl Factory for Schemas {
    async fn fresh(&self) -> Box<dyn Instance> {
        // What is left out was said, and fails in CI: the behaviours then say nothing of PostgreSQL.
        let Some(server) = common::server() else { return Box::new(Memory::new()) };
        let mut options = Options::new(&server.url);
        options.schema = common::fresh_schema();
        options.connections = 6;
        Box::new(Open::over(options))
    }
}

#[async_trait]
impl Instance for Open {
    fn store(&self) -> Store {
        self.postgresql.store()
    }

    async fn crash_and_reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Open { postgresql, name, options } = *self;
        common::crash(postgresql, &options.url, &name).await;
        Box::new(Open::over(options))
    }

    async fn join(&self) -> Option<Box<dyn Instance>> {
        Some(Box::new(Open::over(self.options.clone())))
    }
}

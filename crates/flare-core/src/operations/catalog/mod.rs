//! What there is: resources and subscriptions, created, changed and deleted. In: a draft or a patch. Out: it is checked,
//! stored, and made known to registry and journey, or refused in words.

pub mod changes;
pub mod credentials;
pub mod producers;
pub mod reload;
pub mod resources;
pub mod secrets;
pub mod shards;
pub mod subscriptions;

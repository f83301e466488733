//! What a passive subscription is asked for: notifications are handed out, leased, settled, or streamed.

pub mod deliver;
pub mod leases;
pub mod reserve;
pub mod settle;
pub mod stream;

use super::described::{lease, message, quantity, wait};
use super::{Ids, ids};

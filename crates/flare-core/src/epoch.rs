//! The epoch of this process: given out by the store once, when the first feed is to be opened, and then known to all who
//! write or number something under it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flare_provider::{Ledger, ProviderError};
use tokio::sync::OnceCell;

/// The epoch, given out or not yet.
pub struct Epoch {
    ledger: Arc<dyn Ledger>,
    given: OnceCell<u64>,
    number: EpochNumber,
}

impl Epoch {
    /// One that the ledger has not given out yet.
    pub fn new(ledger: Arc<dyn Ledger>) -> Epoch {
        Epoch { ledger, given: OnceCell::new(), number: EpochNumber::default() }
    }

    /// The epoch; the first who asks has it given out.
    pub async fn get(&self) -> Result<u64, ProviderError> {
        let given = self.given.get_or_try_init(|| self.ledger.next_epoch()).await.copied()?;
        self.number.0.store(given, Ordering::Release);
        Ok(given)
    }

    /// The same for those who have something to do only once it was given out.
    pub fn number(&self) -> EpochNumber {
        self.number.clone()
    }
}

/// The epoch, for those who have something to do only once it was given out.
#[derive(Clone, Debug, Default)]
pub struct EpochNumber(Arc<AtomicU64>);

impl EpochNumber {
    /// The epoch; 0 before it is given out.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl From<u64> for EpochNumber {
    fn from(number: u64) -> EpochNumber {
        EpochNumber(Arc::new(AtomicU64::new(number)))
    }
}

//! Random operations: the same ones are done to the engine and to `memory`, and every answer has to be the same.
//!
//! A failure shows the shortest list of operations that still fails. The seed is fixed, so that a test that was
//! green stays so; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` try others, and more of them.

mod operation;
mod side;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use tokio::runtime::Handle;

use self::operation::{Operation, operations};
use self::side::Side;
use super::{Factory, MemoryFactory};

const CASES: u32 = 10;

/// Catalog, documents, ledger and crashes, in any order.
pub async fn random_operations_answer_as_memory_does(factory: &dyn Factory) {
    let default = Config::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config {
        cases: if asked { default.cases } else { CASES },
        rng_seed: if default.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { default.rng_seed },
        failure_persistence: None,
        max_shrink_iters: 400,
        ..default
    };
    let here = Handle::current();
    let outcome = tokio::task::block_in_place(|| {
        TestRunner::new(config).run(&operations(), |operations| here.block_on(compare(factory, operations)))
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

async fn compare(factory: &dyn Factory, operations: Vec<Operation>) -> Result<(), TestCaseError> {
    let (mut engine, mut memory) = (Side::fresh(factory).await, Side::fresh(&MemoryFactory).await);
    for (number, operation) in operations.iter().enumerate() {
        let (answer, expected) =
            (engine.perform(number, operation).await, memory.perform(number, operation).await);
        if answer != expected {
            let told = format!("{number}: {operation:?}\n answered {answer}\n expected {expected}");
            return Err(TestCaseError::fail(told));
        }
    }
    let (found, expected) = (engine.dump().await, memory.dump().await);
    if found != expected {
        return Err(TestCaseError::fail(format!("in the end found\n{found:#?}\nexpected\n{expected:#?}")));
    }
    Ok(())
}

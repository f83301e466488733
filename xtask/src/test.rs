//! `cargo xtask test`: everything the tests need, then every test.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::browser;
use crate::needs::{self, LeftOut, Need};
use crate::stress;

#[derive(clap::Args)]
pub struct Args {
    /// Leave out the crash tests, the exhaustive checks, the seeds of `stress`, the schedules of `flare-sim` and the browser.
    #[arg(long)]
    quick: bool,
}

const NEEDS: [Need; 5] = [
    Need {
        program: "cc",
        arguments: &["--version"],
        package: "build-essential",
        why: "SQLite is compiled from its source",
    },
    Need {
        program: "python3",
        arguments: &["-c", "import ensurepip"],
        package: "python3-venv",
        why: "published libraries verify what Flare sends",
    },
    Need {
        program: "promtool",
        arguments: &["--version"],
        package: "prometheus",
        why: "it checks the metrics, and tests the alert rules",
    },
    Need {
        program: "etcd",
        arguments: &["--version"],
        package: "etcd-server",
        why: "the engine for it is tested with real servers",
    },
    Need {
        program: "etcdctl",
        arguments: &["version"],
        package: "etcd-client",
        why: "tests of the engine for etcd compact its history and make users",
    },
];

/// Servers that the tests start by themselves, each with the variable that may have the address of one: then they need none.
const SERVERS: [(&str, Need); 3] = [
    (
        "FLARE_TEST_POSTGRESQL_URL",
        Need {
            // Comes with the server and not with its clients, and unlike the server it is where programs are looked for.
            program: "pg_lsclusters",
            arguments: &["--help"],
            package: "postgresql",
            why: "the engine over PostgreSQL is tested against a real server",
        },
    ),
    (
        "FLARE_TEST_RABBITMQ_URL",
        Need {
            // Comes with the server, which is not where programs are looked for, and unlike it ends at once.
            program: "/usr/lib/rabbitmq/bin/rabbitmq-defaults",
            arguments: &[],
            package: "rabbitmq-server",
            why: "sources and sinks of RabbitMQ are tested against a real broker",
        },
    ),
    (
        "FLARE_TEST_NATS_URL",
        Need {
            program: "nats-server",
            arguments: &["--version"],
            package: "nats-server",
            why: "sources and sinks of NATS are tested against a real server",
        },
    ),
];

/// The published libraries that clients, Prometheus and collectors use, as they read what Flare sends; and what makes
/// requests up, or a client, from the description of the API; and two emulators of SQS and Kinesis.
const LIBRARIES: [&str; 9] = [
    "standardwebhooks==1.1.0",
    "cloudevents==2.2.0",
    "prometheus_client==0.26.0",
    "opentelemetry-proto==1.45.2",
    "grpcio==1.85.1",
    "schemathesis==4.32.5",
    "openapi-python-client==0.29.1",
    "ministack==1.5.33",
    "moto[server,sqs,kinesis]==5.2.5",
];

/// What makes and compiles a client in TypeScript is written for these.
const NODE: [Need; 2] = [
    Need {
        program: "node",
        arguments: &["--version"],
        package: "nodejs",
        why: "a client in TypeScript is generated from the description of the API",
    },
    Need {
        program: "npm",
        arguments: &["--version"],
        package: "npm",
        why: "it installs what generates that client",
    },
];

/// Where that client is, and the list of what it needs.
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/clients");

/// Where they are installed; the tests look for them there.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/test-python");

/// Where tests name what they could not test here, a line each.
const LEFT_OUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/test-left-out.txt");

/// So many seeds of `cargo xtask stress`.
const SEEDS: u64 = 20;

/// So many schedules of `flare-sim`.
const SCHEDULES: u64 = 10_000;

/// Runs every test and fails if one does.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut left_out = LeftOut::default();
    // All that is missing is seen to before anything takes long.
    if needs::provide(&NEEDS, &mut left_out)
        && let Err(error) = provide_libraries()
    {
        left_out.because(format!("what published libraries verify ({error:#})"));
    }
    for (address, server) in &SERVERS {
        if std::env::var_os(address).is_none() {
            needs::provide(std::slice::from_ref(server), &mut left_out);
        }
    }
    if needs::provide(&NODE, &mut left_out)
        && let Err(error) = needs::npm_install(Path::new(CLIENTS))
    {
        left_out.because(format!("a generated client in TypeScript ({error:#})"));
    }
    let browser = !args.quick && browser::provide(&mut left_out);
    let _ = std::fs::remove_file(LEFT_OUT);
    let mut test = Command::new(env!("CARGO"));
    // With what is not built by default, so that it is tested, too.
    test.args(["test", "--workspace", "--features", "flare/cpu-profile", "--no-fail-fast"]);
    test.env("FLARE_TEST_LEFT_OUT", LEFT_OUT);
    if args.quick {
        test.args(["--", "--skip", "crashes", "--skip", "check::", "--skip", "planted::"]);
    }
    let status = test.status().context("running cargo test")?;
    let full = test_full()?;
    let simulated = if args.quick { Ok(()) } else { simulate() };
    let stressed = if args.quick { Ok(()) } else { stress::run(&stress::Args::of_seeds(SEEDS)) };
    // The browser is asked too when others failed, so that one run tells everything.
    let seen = if browser { browser::look(&browser::Args::default()) } else { Ok(()) };
    for line in std::fs::read_to_string(LEFT_OUT).unwrap_or_default().lines() {
        left_out.because(line.to_owned());
    }
    let told = left_out.tell();
    if !(status.success() && full) {
        bail!("some tests failed");
    }
    simulated.and(stressed).and(seen).and(told)
}

/// Plays schedules against whole nodes, with the program that `cargo test` has built for the tests of `flare-sim`.
fn simulate() -> anyhow::Result<()> {
    let program = crate::bench::target()?.join("debug/flare-sim");
    let status = Command::new(&program).args(["--schedules", &SCHEDULES.to_string()]).status();
    if !status.with_context(|| format!("running {}", program.display()))?.success() {
        bail!("some schedules of flare-sim broke a promise");
    }
    Ok(())
}

/// What needs all that can be built in: the stories of brokers, which only such a build can tell, and the tests of profiles once more, with
/// the allocator that can profile the heap. All others are about what Flare has by default.
fn test_full() -> anyhow::Result<bool> {
    let mut test = Command::new(env!("CARGO"));
    test.args(["test", "--workspace", "--features", "flare/full", "--no-fail-fast"]);
    test.args(["--test", "api", "--test", "bridges", "--", "profile", "openapi::examples", "brokers::"]);
    test.env("FLARE_TEST_LEFT_OUT", LEFT_OUT);
    Ok(test.status().context("running cargo test")?.success())
}

/// Installs the libraries into an environment of their own, once for each list of them.
fn provide_libraries() -> anyhow::Result<()> {
    let (folder, wanted) = (Path::new(PYTHON), LIBRARIES.join("\n"));
    let list = folder.join("installed.txt");
    if std::fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder).status();
    if !made.context("running python3 -m venv")?.success() {
        bail!("python3 -m venv failed: install python3-venv and try again");
    }
    let mut pip = Command::new(folder.join("bin/python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(LIBRARIES);
    if !pip.status().context("running pip")?.success() {
        bail!("pip could not install {}: the tests verify with them", LIBRARIES.join(", "));
    }
    std::fs::write(&list, wanted).context("noting what was installed")
}

//! Clients that others' generators make of the description create, read and patch a subscription at a real node, in
//! Python and in TypeScript. What they do is in `tests/clients`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Flare, Setup, installed_python, left_out};

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients");

/// A folder with the node's description, in which a client is made.
struct Workshop(PathBuf);

impl Workshop {
    async fn open(flare: &Flare, name: &str) -> Workshop {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let description = flare.api().get("/openapi.json").await.expect(200).body;
        std::fs::write(folder.join("openapi.json"), description).expect("the description is kept");
        Workshop(folder)
    }

    /// Runs a command in the folder, and insists that it succeeds.
    fn run(&self, command: &mut Command) -> String {
        let output = command.current_dir(&self.0).output().expect("it can be run");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = format!("{}{}", said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "{command:?}: {words}");
        words
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn address(flare: &Flare) -> String {
    format!("http://{}", flare.addr())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_python_client_creates_reads_and_patches_a_subscription() {
    let Some(python) = installed_python() else { return };
    let flare = Setup::default().start().await;
    let workshop = Workshop::open(&flare, "python-client").await;
    let mut generate = Command::new(python);
    generate.args(["-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]);
    let words = workshop.run(generate.args(["--output-path", "flare_client"]));
    // What it leaves out it says; lines of JSON are what it does not know.
    let missing = words.matches("WARNING parsing").count();
    assert_eq!(
        missing,
        words.matches("WARNING parsing POST /documents ").count()
            + words.matches("WARNING parsing GET /tail ").count(),
        "{words}"
    );
    let mut use_it = Command::new(python);
    use_it.arg(Path::new(CLIENTS).join("client.py")).arg(address(&flare)).env("PYTHONPATH", &workshop.0);
    workshop.run(&mut use_it);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_typescript_client_creates_reads_and_patches_a_subscription() {
    let modules = Path::new(CLIENTS).join("node_modules");
    if !modules.join("typescript").exists() {
        return left_out("a generated client in TypeScript: `cargo xtask test` installs what makes it");
    }
    let flare = Setup::default().start().await;
    let workshop = Workshop::open(&flare, "typescript-client").await;
    for file in ["client.ts", "package.json"] {
        std::fs::copy(Path::new(CLIENTS).join(file), workshop.0.join(file)).expect("a copy");
    }
    std::os::unix::fs::symlink(&modules, workshop.0.join("node_modules")).expect("a link");
    let tool = |path: &str| {
        let mut node = Command::new("node");
        node.arg(modules.join(path));
        node
    };
    // A field with a default is still one that a request can leave out.
    workshop.run(tool("openapi-typescript/bin/cli.js").args([
        "openapi.json",
        "--output",
        "flare.d.ts",
        "--default-non-nullable=false",
    ]));
    let strict = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", "client.ts"];
    workshop.run(tool("typescript/bin/tsc").args(strict));
    workshop.run(Command::new("node").arg("client.js").arg(address(&flare)));
}

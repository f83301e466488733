//! In: the packages that crates/flare/ui-assets/package.json pins. Out: what the web interface embeds of them, in
//! ui-assets/vendor, which is committed: building Flare needs no npm.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

/// Options of `cargo xtask assets`.
#[derive(clap::Args)]
pub struct Args {
    /// Fetch nothing: use the packages that are already there.
    #[arg(long)]
    offline: bool,
}

/// A file of a package, and the name that it gets here.
const FILES: [(&str, &str); 2] = [
    ("@tabler/core/dist/css/tabler.min.css", "tabler.css"),
    ("@hotwired/turbo/dist/turbo.es2017-umd.js", "turbo.js"),
];

/// Fetches and prepares the assets.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/flare/ui-assets"));
    if !args.offline {
        let install = if root.join("package-lock.json").exists() { "ci" } else { "install" };
        let status = Command::new("npm").arg(install).current_dir(&root).status();
        ensure!(status.context("starting npm, which comes with Node.js")?.success(), "npm {install} failed");
    }
    let (packages, vendor) = (root.join("node_modules"), root.join("vendor"));
    for (from, to) in FILES {
        let text = read(&packages.join(from))?;
        let packed = gzip(without_source_map(&text).as_bytes())?;
        println!("{to}: {} bytes, {} compressed", text.len(), packed.len());
        write(&vendor.join(format!("{to}.gz")), &packed)?;
    }
    let mut icons = String::new();
    for name in icon_names(&root)? {
        let svg = read(&packages.join(format!("@tabler/icons/icons/outline/{name}.svg")))?;
        icons.push_str(&format!("{name} {}\n", icon(&svg)));
    }
    write(&vendor.join("icons.txt"), icons.as_bytes())?;
    let mut licences = String::from("What is embedded in Flare of others' work, and its licences.\n");
    for package in ["@tabler/core", "@tabler/icons", "@hotwired/turbo"] {
        let manifest: Value = serde_json::from_str(&read(&packages.join(package).join("package.json"))?)?;
        let version = manifest["version"].as_str().context("a package has a version")?;
        let licence =
            ["LICENSE", "MIT-LICENSE"].iter().find_map(|name| read(&packages.join(package).join(name)).ok());
        let licence = licence.unwrap_or_else(|| manifest["license"].as_str().unwrap_or_default().to_owned());
        licences.push_str(&format!("\n== {package} {version}\n\n{}\n", licence.trim()));
    }
    write(&vendor.join("LICENSES.txt"), licences.as_bytes())
}

fn icon_names(root: &Path) -> anyhow::Result<Vec<String>> {
    let manifest: Value = serde_json::from_str(&read(&root.join("package.json"))?)?;
    let names = manifest["flare"]["icons"].as_array().context("package.json lists flare.icons")?;
    let mut names: Vec<String> = names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// An icon on one line, hidden from screen readers: the text beside it speaks.
fn icon(svg: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body).trim().trim_end_matches("</svg>");
    let paths =
        body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("M0 0h24v24H0z"));
    let paths: String = paths.collect();
    format!(
        r#"<svg class="icon" width="24" height="24" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">{paths}</svg>"#
    )
}

/// The map is not embedded, and asking for it would be a request in vain.
fn without_source_map(text: &str) -> &str {
    text.find("/*# sourceMappingURL=").map_or(text, |at| &text[..at]).trim_end()
}

/// Without a name or a time, so that the same input gives the same bytes.
fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

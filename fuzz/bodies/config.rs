//! Whatever comes in as a configuration file: it is refused in words, or taken, and then a password of the proxy is shown to nobody.

use flare_core::config::{Sources, load, show};

pub fn run(data: &[u8]) {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("flare-fuzz-{}.toml", std::process::id()));
    std::fs::write(&path, data).expect("a file");
    let sources = Sources { file: Some(path), directory: folder, ..Sources::default() };
    match load(&sources) {
        Ok(loaded) => {
            let shown = show::text(&loaded);
            let password = loaded.config.http.client.proxy.get().and_then(|proxy| proxy.reveal());
            if let Some(password) = password.filter(|password| password.len() > 8) {
                assert!(!shown.contains(password), "{shown}");
            }
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

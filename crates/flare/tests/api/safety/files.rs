//! Who may read what lies on the disk.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Setup, minimal_resource, store_is_durable};

fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut all = vec![(".".to_owned(), mode(folder))];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all.push((path.file_name().unwrap().to_string_lossy().into_owned(), mode(&path)));
    }
    all
}

#[tokio::test]
async fn the_data_is_its_owners_alone_and_what_was_open_is_closed() {
    if !store_is_durable() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let mut flare = Setup::default().data(&data).start().await;
    flare.api().post("/resources", &minimal_resource()).await.expect(201);
    let others = |modes: Vec<(String, u32)>| {
        modes.into_iter().filter(|(_, mode)| mode & 0o077 != 0).collect::<Vec<_>>()
    };
    assert!(modes(&data).len() > 3, "there is something to look at");
    assert_eq!(others(modes(&data)), vec![]);
    assert_eq!(flare.count_logged("now only its owner can"), 0, "there was nothing to tighten");
    flare.kill();
    for (name, _) in modes(&data) {
        let open = if name == "." { 0o755 } else { 0o644 };
        std::fs::set_permissions(data.join(name), Permissions::from_mode(open)).unwrap();
    }
    flare.restart().await;
    assert_eq!(others(modes(&data)), vec![]);
    assert_eq!(flare.count_logged("now only its owner can"), 1);
    assert_eq!(flare.api().get("/resources").await.json()["pagination"]["total"], 1);
}

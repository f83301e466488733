//! In: what the allocator noted. Out: who holds memory, C's libraries included.
//!
//! jemalloc notes the stack of one in so many bytes that are asked for, and forgets it when they are given back. What is
//! absent: what was taken before [`begin`], and what no allocator gives out (files in memory, the stacks of threads).

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{io, ptr};

use flare_core::door::{Clock, fresh_id};
use tikv_jemalloc_ctl::{Access as _, AsName as _, profiling};

use super::jeheap::{self, Unreadable};
use super::{Profile, Stack, Unit, alone};

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum NoHeapProfile {
    /// One is being taken.
    #[error("a profile is being taken already")]
    Busy,
    /// It was told so, or not told otherwise.
    #[error("the allocator was started without profiles")]
    Off,
    /// The allocator did not. Its library's errors are no `Error`s unless all of libc is built another way for it.
    #[error("the allocator refused: {0}")]
    Allocator(tikv_jemalloc_ctl::Error),
    /// Its text could not be had.
    #[error("a file in {} for what the allocator writes", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// Its text is another one than we know.
    #[error(transparent)]
    Text(#[from] Unreadable),
}

/// Lets the allocator note who takes memory, from now on.
pub fn begin() -> Result<(), NoHeapProfile> {
    if !profiling::prof::read().map_err(NoHeapProfile::Allocator)? {
        return Err(NoHeapProfile::Off);
    }
    b"prof.active\0".name().write(true).map_err(NoHeapProfile::Allocator)
}

/// Who holds memory now. Finding the names takes a while: not for a thread that serves requests.
pub fn take(clock: &dyn Clock) -> Result<Profile, NoHeapProfile> {
    let _one = alone().ok_or(NoHeapProfile::Busy)?;
    if !profiling::prof::read().map_err(NoHeapProfile::Allocator)? {
        return Err(NoHeapProfile::Off);
    }
    let began_nanos = clock.now().millis().saturating_mul(1_000_000);
    let heap = jeheap::read(&dump()?)?;
    let mut names = Names::default();
    let mut stacks: HashMap<(String, Vec<String>), (u64, u64)> = HashMap::new();
    for held in heap.held {
        let (pieces, bytes) = stacks.entry((held.thread, names.of(&held.addresses))).or_default();
        *pieces += held.pieces;
        *bytes += held.bytes;
    }
    // What was read to find the names would be the largest part of the next profile.
    backtrace::clear_symbol_cache();
    let stack = |((thread, frames), (count, amount))| Stack { thread, frames, count, amount };
    let mut stacks: Vec<Stack> = stacks.into_iter().map(stack).collect();
    stacks.sort_unstable();
    Ok(Profile { unit: Unit::Heap { period: heap.period }, began_nanos, took_nanos: 0, stacks })
}

/// Where the allocator writes. It takes a path and nothing else, and one that stays.
static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(fresh_id("flare-heap"));
    let file = folder.join("heap");
    let for_c = [file.as_os_str().as_bytes(), b"\0"].concat();
    Place { folder, file, for_c }
});

struct Place {
    folder: PathBuf,
    file: PathBuf,
    for_c: Vec<u8>,
}

/// The allocator's text.
fn dump() -> Result<String, NoHeapProfile> {
    /// A folder that goes with its owner.
    struct Folder<'a>(&'a Path);
    impl Drop for Folder<'_> {
        fn drop(&mut self) {
            // What is left in TMPDIR hurts nobody, and the profile is here.
            let _ = std::fs::remove_dir_all(self.0);
        }
    }
    let place: &'static Place = &PLACE;
    let failed = |error| NoHeapProfile::File(place.folder.clone(), error);
    // A folder that nobody else can write to: the allocator would follow a link that somebody has laid out.
    DirBuilder::new().mode(0o700).create(&place.folder).map_err(failed)?;
    let _folder = Folder(&place.folder);
    b"prof.dump\0".name().write(place.for_c.as_slice()).map_err(NoHeapProfile::Allocator)?;
    // Threads have the names that they gave themselves, in whatever letters.
    std::fs::read(&place.file).map(|text| String::from_utf8_lossy(&text).into_owned()).map_err(failed)
}

/// The functions at addresses. Each address is looked up once; all that an address stands for, inlined functions among
/// it, is beside it, the innermost first.
#[derive(Default)]
struct Names(HashMap<usize, Vec<String>>);

impl Names {
    /// Functions, the outermost first, without those of the allocator.
    fn of(&mut self, addresses: &[usize]) -> Vec<String> {
        let mut frames: Vec<String> = Vec::new();
        for address in addresses {
            frames.extend(self.0.entry(*address).or_insert_with(|| functions(*address)).iter().cloned());
        }
        let callers = frames.iter().rposition(|name| is_of_the_allocator(name)).map_or(0, |last| last + 1);
        frames.drain(..callers);
        frames.reverse();
        frames
    }
}

/// Every stack ends in the allocator, which tells nothing about whose memory it is.
fn is_of_the_allocator(name: &str) -> bool {
    let c =
        ["malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc", "valloc", "pvalloc"];
    let rust = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];
    let plain = name.trim_start_matches("__rustc::");
    c.contains(&name)
        || rust.contains(&plain)
        || name.starts_with("_rjem_")
        || name.starts_with("<tikv_jemallocator::")
}

fn functions(address: usize) -> Vec<String> {
    let mut names = Vec::new();
    backtrace::resolve(ptr::without_provenance_mut(address), |symbol| {
        names.extend(symbol.name().map(|name| format!("{name:#}")));
    });
    if names.is_empty() {
        names.push(format!("{address:#x}"));
    }
    names
}

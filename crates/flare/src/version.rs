//! In: what the build script found out. Out: which Flare this is.

pub use flare_core::version::VERSION;
use flare_core::version::Version;

/// The git commit it was built from, short; `unknown` where there was none.
pub const SHA: &str = env!("BUILT_SHA");

/// The time of that commit, or of `SOURCE_DATE_EPOCH`, in RFC 3339; `unknown` where there was neither. It is not the
/// time of the compilation, so that the same source gives the same binary.
pub const BUILD_TIME: &str = env!("BUILT_TIME");

/// All of it on one line.
pub const LONG: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("BUILT_SHA"), ", ", env!("BUILT_TIME"), ")");

/// This Flare.
pub const THIS: Version = Version { version: VERSION, sha: SHA, build_time: BUILD_TIME };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_has_three_numbers() {
        assert_eq!(VERSION.split('.').filter(|part| part.parse::<u32>().is_ok()).count(), 3);
    }

    #[test]
    fn the_build_time_is_a_time_or_unknown() {
        let like = "0000-00-00T00:00:00Z";
        let shape: String = BUILD_TIME.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert!(shape == like || BUILD_TIME == "unknown", "{BUILD_TIME}");
    }

    /// `cargo run` hands what a build script sets to the program, which refuses `FLARE_` variables it does not know.
    #[test]
    fn what_the_build_script_sets_is_no_configuration() {
        let script = include_str!("../build.rs");
        let set: Vec<&str> = script.split("rustc-env=").skip(1).collect();
        assert!(!set.is_empty(), "the build script sets variables");
        assert!(set.iter().all(|name| !name.starts_with("FLARE_")), "{set:?}");
    }
}

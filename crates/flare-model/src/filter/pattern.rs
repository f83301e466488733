//! In: a regular expression as RE2 reads it. Out: it compiled, within bounds, and what it costs to look with it.
//!
//! A match takes time in proportion to the text, never more; but the factor is the size of the compiled
//! pattern, so a large pattern is charged more for every byte.

use regex::RegexBuilder;

use super::re2;
use super::tree::Pattern;

/// Sizes a compiled pattern may have, and what a byte of text then costs. Beyond the last it is refused.
const SIZES: [(usize, usize); 3] = [(4 << 10, 2), (32 << 10, 8), (128 << 10, 32)];

/// Compiles a pattern, or says what is wrong with it.
pub(super) fn compile(text: &str) -> Result<Pattern, String> {
    let not_one = |why: &str| format!("the pattern is not a regular expression: {why}");
    let text = re2::translate(text).map_err(|why| not_one(&why))?;
    for (size, cost_per_byte) in SIZES {
        let built =
            RegexBuilder::new(&text).size_limit(size).dfa_size_limit(256 << 10).nest_limit(50).build();
        match built {
            Ok(regex) => return Ok(Pattern { regex, cost_per_byte }),
            Err(regex::Error::CompiledTooBig(_)) => {}
            // The message draws the pattern over several lines, the last of which says what it is.
            Err(error) => {
                let words = error.to_string();
                let last = words.lines().last().unwrap_or_default().trim_start_matches("error: ");
                return Err(not_one(last));
            }
        }
    }
    Err("the pattern is too large; use smaller repetitions or fewer classes".to_owned())
}

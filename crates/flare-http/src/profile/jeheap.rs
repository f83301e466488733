//! In: the text that jemalloc writes of its heap (`heap_v2`). Out: what each thread holds by each stack, in numbers that
//! stand for the whole heap and not for the samples of it.
//!
//! ```text
//! heap_v2/524288                      bytes between two samples, on average
//!   t*: 3: 4000 [0: 0]                all threads: pieces, bytes, and what was ever taken
//!   t7: 2: 3000 [0: 0] flare-api      each thread, and its name if it has one
//! @ 0x55d0 0x55c0                     a stack, the innermost first
//!   t*: 2: 3000 [0: 0]
//!   t7: 2: 3000 [0: 0]
//!
//! MAPPED_LIBRARIES:                   what the addresses lie in
//! ```

use std::collections::HashMap;

/// What is held.
#[derive(Debug, PartialEq)]
pub struct Heap {
    /// Bytes between two samples, on average.
    pub period: u64,
    /// By thread and stack.
    pub held: Vec<Held>,
}

/// What one thread holds by one stack.
#[derive(Debug, PartialEq)]
pub struct Held {
    /// Its name, or its number in the allocator.
    pub thread: String,
    /// Return addresses, the innermost first.
    pub addresses: Vec<usize>,
    /// Pieces of memory.
    pub pieces: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A line that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number} of the allocator's text is not understood: {line}")]
pub struct Unreadable {
    number: usize,
    line: String,
}

/// Reads the whole text.
pub fn read(text: &str) -> Result<Heap, Unreadable> {
    let mut lines = text.lines().enumerate();
    let unreadable = |(at, line): (usize, &str)| Unreadable { number: at + 1, line: line.to_owned() };
    let first = lines.next().unwrap_or_default();
    let period: u64 =
        first.1.strip_prefix("heap_v2/").and_then(|n| n.parse().ok()).ok_or_else(|| unreadable(first))?;
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut stack: Option<Vec<usize>> = None;
    let mut held = Vec::new();
    for line in lines.take_while(|(_, line)| !line.is_empty() && *line != "MAPPED_LIBRARIES:") {
        if let Some(addresses) = line.1.strip_prefix('@') {
            stack = Some(
                addresses
                    .split_whitespace()
                    .map(address)
                    .collect::<Option<_>>()
                    .ok_or_else(|| unreadable(line))?,
            );
            continue;
        }
        let Counts { thread, pieces, bytes, name } = counts(line.1).ok_or_else(|| unreadable(line))?;
        match &stack {
            None if name.is_empty() => {}
            None => {
                names.insert(thread, name);
            }
            // The sum of all threads, and what was given back.
            Some(_) if thread == "t*" || pieces == 0 => {}
            Some(addresses) => {
                let share = chance(bytes as f64 / pieces as f64, period);
                held.push(Held {
                    thread: names.get(thread).unwrap_or(&thread).to_string(),
                    addresses: addresses.clone(),
                    pieces: (pieces as f64 / share).round() as u64,
                    bytes: (bytes as f64 / share).round() as u64,
                });
            }
        }
    }
    Ok(Heap { period, held })
}

/// How likely a piece of so many bytes is sampled: each byte is the one with the same chance. Dividing by it makes samples
/// stand for what was not sampled.
fn chance(bytes: f64, period: u64) -> f64 {
    -(-bytes / period as f64).exp_m1()
}

fn address(text: &str) -> Option<usize> {
    usize::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

struct Counts<'a> {
    thread: &'a str,
    pieces: u64,
    bytes: u64,
    name: &'a str,
}

/// `  t7: 2: 3000 [0: 0] name`.
fn counts(line: &str) -> Option<Counts<'_>> {
    let (thread, rest) = line.trim_start().split_once(": ")?;
    let (pieces, rest) = rest.split_once(": ")?;
    let (bytes, rest) = rest.split_once(" [")?;
    let (_, name) = rest.split_once(']')?;
    let known = thread.strip_prefix('t').is_some_and(|number| number == "*" || number.parse::<u64>().is_ok());
    known.then_some(Counts {
        thread,
        pieces: pieces.parse().ok()?,
        bytes: bytes.parse().ok()?,
        name: name.trim(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "heap_v2/1000\n  t*: 4: 300016 [0: 0]\n  t1: 2: 300000 [0: 0] flare deliver\n  t2: 2: 16 [0: 0]\n\
        @ 0x10 0xff\n  t*: 4: 300016 [0: 0]\n  t1: 2: 300000 [0: 0]\n  t2: 2: 16 [0: 0]\n\
        @ 0x20\n  t*: 0: 0 [0: 0]\n  t1: 0: 0 [0: 0]\n\nMAPPED_LIBRARIES:\n55d0-55e0 r--p 00000000 /usr/bin/flare\n";

    #[test]
    fn what_each_thread_holds_stands_for_the_whole_heap() {
        let Heap { period, held } = read(TEXT).unwrap();
        assert_eq!(period, 1000);
        let large =
            Held { thread: "flare deliver".into(), addresses: vec![0x10, 0xff], pieces: 2, bytes: 300_000 };
        // Of pieces of 8 bytes one in 125.5 is sampled, if one byte in 1,000 is.
        let small = Held { thread: "t2".into(), addresses: vec![0x10, 0xff], pieces: 251, bytes: 2008 };
        assert_eq!(held, [large, small]);
    }

    #[test]
    fn what_is_not_understood_is_named_by_its_line() {
        for (text, number) in [
            ("", 1),
            ("heap_v3/1000", 1),
            ("heap_v2/many", 1),
            ("heap_v2/1000\n  t*: 4 [0: 0]", 2),
            ("heap_v2/1000\n  x1: 4: 300 [0: 0]", 2),
            ("heap_v2/1000\n  t*: 4: 300 [0: 0]\n@ 0x10 ten", 3),
        ] {
            assert_eq!(read(text).unwrap_err().number, number, "{text}");
        }
    }
}

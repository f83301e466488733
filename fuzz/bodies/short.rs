//! A short run of a fuzz target without a fuzzer: what is kept of its corpus, and changes of it that a seed decides. It finds
//! what broke since, not what nobody has found: that is for `fuzz/run.sh`.

use std::path::Path;

/// Numbers that only a seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides.max(1) as u64) as usize
    }
}

/// Bytes that mean something to parsers.
const ODD: [&[u8]; 24] = [
    b"\0",
    b"\r\n",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"/",
    b"//",
    b"?",
    b"#",
    b"@",
    b"%",
    b"%00",
    b"%2F",
    b"..",
    b"=",
    b"&",
    b"\xff",
    b"\xed\xa0\x80",
    "\u{202e}".as_bytes(),
    b"18446744073709551616",
];

/// Runs a target with every entry of its corpus and so many changes of them.
pub fn run(corpus: &Path, changes: usize, target: impl Fn(&[u8])) {
    let mut files: Vec<_> = std::fs::read_dir(corpus)
        .unwrap_or_else(|error| panic!("{}: {error}", corpus.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).expect("a file")).collect();
    assert!(!seeds.is_empty(), "there is a corpus");
    seeds.iter().for_each(|seed| target(seed));
    let mut dice = Dice(1);
    for _ in 0..changes {
        let mut data = seeds[dice.roll(seeds.len())].clone();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(data.len() + 1);
            match dice.roll(6) {
                0 if at < data.len() => data[at] ^= 1 << dice.roll(8),
                1 if at < data.len() => _ = data.remove(at),
                2 => data.truncate(at),
                3 => {
                    let odd = ODD[dice.roll(ODD.len())];
                    data.splice(at..at, odd.iter().copied());
                }
                4 => {
                    let other = &seeds[dice.roll(seeds.len())];
                    data.truncate(at);
                    data.extend_from_slice(&other[dice.roll(other.len() + 1)..]);
                }
                _ => {
                    let part = data[at..].to_vec();
                    data.extend(part);
                }
            }
            data.truncate(4096);
        }
        target(&data);
    }
}

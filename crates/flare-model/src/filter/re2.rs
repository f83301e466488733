//! In: a pattern as RE2 reads it, which is what CEL prescribes for `matches`. Out: the same in the syntax of `regex`.
//!
//! The two engines match alike and read alike, but not everywhere. In RE2 `\d`, `\s`, `\w` and `\b` are about ASCII,
//! a class has no operators and no classes inside it, `\Q…\E` quotes, `{` that begins no repetition is a character,
//! and there are octal escapes. So every pattern is read here by RE2's rules, and written down again in the part of
//! the syntax that both share. Parentheses that do not pair are left to `regex` to find. Captures are not: a match
//! is true or false, and nothing else is asked for.

use std::fmt::Write;

/// How often a repetition may be written to repeat: RE2's bound.
const MOST_REPEATS: u32 = 1000;

/// ASCII classes by name. RE2 and `regex` mean the same by them.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// The same pattern for `regex`, or what is wrong with it.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let out = String::with_capacity(pattern.len() * 2);
    let mut reader = Reader { rest: pattern, out, flags: String::new(), names: Vec::new() };
    reader.pattern()?;
    Ok(reader.out + &reader.flags)
}

/// What a repetition would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing: the beginning, or a `(` or `|`.
    Nothing,
    Something,
    /// Something that is repeated already.
    Repeated,
}

struct Reader<'p> {
    rest: &'p str,
    out: String,
    /// Flags that were set, `(?i)`, and are not written yet: a repetition that follows them is about what stands before.
    flags: String,
    /// Names of groups so far.
    names: Vec<&'p str>,
}

impl<'p> Reader<'p> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn pattern(&mut self) -> Result<(), String> {
        let mut before = Before::Nothing;
        while let Some(next) = self.next() {
            // Counted, since after another repetition a `?` would mean something else.
            let repetition = match next {
                '*' => Some("{0,}".to_owned()),
                '+' => Some("{1,}".to_owned()),
                '?' => Some("{0,1}".to_owned()),
                '{' => self.counts()?,
                _ => None,
            };
            if let Some(counts) = repetition {
                before = self.repetition(before, &counts)?;
                continue;
            }
            if next != '(' {
                self.write_flags();
            }
            before = match next {
                '(' => self.group(before)?,
                '|' => {
                    self.out.push('|');
                    Before::Nothing
                }
                ')' | '.' | '^' | '$' => {
                    self.out.push(next);
                    Before::Something
                }
                '[' => self.class()?,
                '\\' => self.escape(before)?,
                other => self.literal(other),
            };
        }
        Ok(())
    }

    /// A character that stands for itself, here and in a class.
    fn literal(&mut self, character: char) -> Before {
        if character.is_ascii_alphanumeric() || !character.is_ascii() {
            self.out.push(character);
        } else {
            let _ = write!(self.out, "\\x{{{:x}}}", u32::from(character));
        }
        Before::Something
    }

    fn write_flags(&mut self) {
        self.out.push_str(&self.flags);
        self.flags.clear();
    }

    fn open_group(&mut self, opening: &str) -> Before {
        self.write_flags();
        self.out.push_str(opening);
        Before::Nothing
    }

    fn repetition(&mut self, before: Before, counts: &str) -> Result<Before, String> {
        match before {
            Before::Nothing => return Err("a repetition has nothing to repeat".to_owned()),
            Before::Repeated => return Err("something repeats a repetition; use a group".to_owned()),
            Before::Something => self.out.push_str(counts),
        }
        // Whether few or many are preferred is the same to someone who asks only whether there is a match.
        self.take("?");
        Ok(Before::Repeated)
    }

    /// What follows `{`, if it is a repetition: `n}`, `n,}` or `n,m}`.
    fn counts(&mut self) -> Result<Option<String>, String> {
        let Some((inside, rest)) = self.rest.split_once('}') else { return Ok(None) };
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let is_number = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && (text == "0" || !text.starts_with('0'))
        };
        if !is_number(least) || !(most.is_empty() || is_number(most)) {
            return Ok(None);
        }
        let (low, high) =
            (least.parse::<u32>(), if most.is_empty() { Ok(MOST_REPEATS) } else { most.parse() });
        match (low, high) {
            (Ok(low), Ok(high)) if low <= high && high <= MOST_REPEATS => {}
            _ => return Err(format!("`{{{inside}}}` is no repetition; at most {MOST_REPEATS} are possible")),
        }
        self.rest = rest;
        Ok(Some(format!("{{{inside}}}")))
    }

    /// What follows `(`.
    fn group(&mut self, before: Before) -> Result<Before, String> {
        if !self.take("?") {
            return Ok(self.open_group("(?:"));
        }
        if self.take("P<") || self.take("<") {
            let Some((name, rest)) = self.rest.split_once('>') else {
                return Err("the name of a group never ends".to_owned());
            };
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(format!("`{name}` is no name of a group"));
            }
            if self.names.contains(&name) {
                return Err(format!("two groups are named `{name}`"));
            }
            self.names.push(name);
            self.rest = rest;
            return Ok(self.open_group("(?:"));
        }
        self.flags(before)
    }

    /// What follows `(?` where it is no name: `i`, `m`, `s` or `U`, switched on or, after `-`, off.
    fn flags(&mut self, before: Before) -> Result<Before, String> {
        let (mut on, mut off) = (String::new(), String::new());
        let (mut switch_on, mut is_complete) = (true, true);
        loop {
            match self.next() {
                Some(flag @ ('i' | 'm' | 's' | 'U')) => {
                    is_complete = true;
                    // The last word counts.
                    on.retain(|other| other != flag);
                    off.retain(|other| other != flag);
                    if switch_on { &mut on } else { &mut off }.push(flag);
                }
                Some('-') if switch_on => (switch_on, is_complete) = (false, false),
                Some(end @ (':' | ')')) if is_complete => {
                    let minus = if off.is_empty() { "" } else { "-" };
                    if end == ':' {
                        return Ok(self.open_group(&format!("(?{on}{minus}{off}:")));
                    }
                    if !(on.is_empty() && off.is_empty()) {
                        let _ = write!(self.flags, "(?{on}{minus}{off})");
                    }
                    return Ok(if before == Before::Nothing { before } else { Before::Something });
                }
                Some(other) => return Err(format!("there is no `(?{other}`; groups know i, m, s and U")),
                None => return Err("a group never ends".to_owned()),
            }
        }
    }

    /// What follows `\`, outside of classes.
    fn escape(&mut self, before: Before) -> Result<Before, String> {
        let written = match self.rest.chars().next() {
            Some('A') => "\\A",
            Some('z') => "\\z",
            Some('b') => "(?-u:\\b)",
            Some('B') => "(?-u:\\B)",
            Some('Q') => {
                self.next();
                let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = rest;
                return Ok(quoted.chars().fold(before, |_, character| self.literal(character)));
            }
            _ => {
                if let Some(group) = self.named_class()? {
                    self.out.push_str(&group);
                } else {
                    let character = self.character()?;
                    self.literal(character);
                }
                return Ok(Before::Something);
            }
        };
        self.next();
        self.out.push_str(written);
        Ok(Before::Something)
    }

    /// What follows `\`, if it is a class: `\d`, `\pL`, `\p{^Greek}`. The same outside of a class and in one.
    fn named_class(&mut self) -> Result<Option<String>, String> {
        let Some(letter) = self.rest.chars().next() else { return Ok(None) };
        let ascii = match letter {
            'd' | 'D' => "0-9",
            's' | 'S' => "\\t\\n\\f\\r ",
            'w' | 'W' => "0-9A-Za-z_",
            'p' | 'P' => {
                self.next();
                return self.unicode_class(letter == 'P').map(Some);
            }
            _ => return Ok(None),
        };
        self.next();
        let not = if letter.is_ascii_uppercase() { "^" } else { "" };
        Ok(Some(format!("[{not}{ascii}]")))
    }

    /// What follows `\p` or `\P`.
    fn unicode_class(&mut self, negated: bool) -> Result<String, String> {
        let start = self.rest;
        let (name, negated) = if self.take("{") {
            let negated = negated != self.take("^");
            let Some((name, rest)) = self.rest.split_once('}') else {
                return Err("the name of a class never ends".to_owned());
            };
            self.rest = rest;
            (name, negated)
        } else {
            let length = self.next().map_or(0, char::len_utf8);
            (&start[..length], negated)
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("`{name}` is no class of characters"));
        }
        Ok(format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' }))
    }

    /// What follows `\` where it stands for one character.
    fn character(&mut self) -> Result<char, String> {
        let unknown = |c: char| Err(format!("there is no escape `\\{c}`"));
        match self.next() {
            None => Err("the pattern ends with `\\`".to_owned()),
            Some('a') => Ok('\x07'),
            Some('f') => Ok('\x0c'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('v') => Ok('\x0b'),
            Some('x') => self.hexadecimal(),
            Some(digit @ '0'..='7') => {
                let is_octal = |c: &char| matches!(c, '0'..='7');
                let more = self.rest.chars().take(2).take_while(is_octal).count();
                if digit != '0' && more == 0 {
                    return Err(format!("`\\{digit}` would refer to a group, which is not possible"));
                }
                let digits = format!("{digit}{}", &self.rest[..more]);
                self.rest = &self.rest[more..];
                let code = u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32);
                code.map_or_else(|| unknown(digit), Ok)
            }
            Some(mark) if mark.is_ascii() && !mark.is_ascii_alphanumeric() => Ok(mark),
            Some(other) => unknown(other),
        }
    }

    /// What follows `\x`: two digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Result<char, String> {
        let digits = if self.take("{") {
            let (digits, rest) = self.rest.split_once('}').unwrap_or_default();
            self.rest = rest;
            digits
        } else {
            let digits = self.rest.get(..2).unwrap_or_default();
            self.rest = &self.rest[digits.len()..];
            digits
        };
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex).and_then(char::from_u32);
        code.ok_or_else(|| "`\\x` takes two hexadecimal digits, or those of a character in braces".to_owned())
    }

    /// What follows `[`.
    fn class(&mut self) -> Result<Before, String> {
        const OPEN: &str = "a class `[` never ends";
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        while is_first || !self.take("]") {
            // A `]` at the very beginning is a character.
            is_first = false;
            if let Some(name) = self.posix()? {
                let _ = write!(self.out, "[:{name}:]");
                continue;
            }
            if let Some(after) = self.rest.strip_prefix('\\') {
                let before = std::mem::replace(&mut self.rest, after);
                if let Some(group) = self.named_class()? {
                    self.out.push_str(&group);
                    continue;
                }
                self.rest = before;
            }
            let low = self.member().ok_or(OPEN)??;
            self.literal(low);
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                let high = self.member().ok_or(OPEN)??;
                if high < low {
                    return Err(format!("the range `{low}-{high}` has its end before its beginning"));
                }
                self.out.push('-');
                self.literal(high);
            }
        }
        self.out.push(']');
        Ok(Before::Something)
    }

    /// A class by name, as in `[[:alpha:]]`.
    fn posix(&mut self) -> Result<Option<&'p str>, String> {
        let Some((name, rest)) = self.rest.strip_prefix("[:").and_then(|inside| inside.split_once(":]"))
        else {
            return Ok(None);
        };
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("there is no class `[:{name}:]`"));
        }
        self.rest = rest;
        Ok(Some(name))
    }

    /// One character of a class.
    fn member(&mut self) -> Option<Result<char, String>> {
        match self.next()? {
            '\\' => Some(self.character()),
            other => Some(Ok(other)),
        }
    }
}

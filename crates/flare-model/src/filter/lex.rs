//! In: the text of an expression. Out: its tokens, each with where it begins.

use super::mistake::Mistake;

/// One word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name, or a word like `in`.
    Word(String),
    /// The digits of an integer; a sign is an operator before it.
    Int(u64),
    /// With the suffix `u`.
    Uint(u64),
    Double(f64),
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// Longer ones first: `<=` is not `<` and `=`.
const SIGNS: [&str; 25] = [
    "&&", "||", "==", "!=", "<=", ">=", ".?", "[?", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".",
    ",", "(", ")", "[", "]", "{",
];

/// Splits an expression into tokens; the last one is `End`.
pub(super) fn tokens(source: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    let mut lexer = Lexer { source, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let token = lexer.next()?;
        let end = token == Token::End;
        tokens.push((at, token));
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn mistake(&self, at: usize, problem: impl Into<String>) -> Mistake {
        Mistake::at(self.source, at, problem)
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']).len();
            let comment = if rest[blanks..].starts_with("//") {
                rest[blanks..].find('\n').unwrap_or(rest.len() - blanks)
            } else {
                0
            };
            self.at += blanks + comment;
            if comment == 0 {
                return;
            }
        }
    }

    fn next(&mut self) -> Result<Token, Mistake> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        let dotted = first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || dotted {
            return self.number();
        }
        if let Some((raw, quote)) = string_start(rest) {
            return self.text(raw, quote);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !name(c)).unwrap_or(rest.len());
            let word = rest[..end].to_owned();
            if rest[end..].starts_with(['\'', '"']) {
                let problem = "bytes are not available: a JSON document has none";
                return Err(self.mistake(self.at, problem));
            }
            self.at += end;
            return Ok(Token::Word(word));
        }
        if first == '}' {
            self.at += 1;
            return Ok(Token::Sign("}"));
        }
        let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
            let hint = match first {
                '=' => "; equality is `==`",
                '&' => "; and is `&&`",
                '|' => "; or is `||`",
                _ => "",
            };
            return Err(
                self.mistake(self.at, format!("unexpected character `{}`{hint}", first.escape_debug()))
            );
        };
        self.at += sign.len();
        Ok(Token::Sign(sign))
    }

    fn number(&mut self) -> Result<Token, Mistake> {
        let begin = self.at;
        let rest = self.rest();
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (length, radix, is_double) = if rest.starts_with("0x") || rest.starts_with("0X") {
            let hex = rest[2..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - 2);
            (2 + hex, 16, false)
        } else {
            let mut length = digits(rest);
            let mut is_double = false;
            // `1.size()` is a call on 1, not a double.
            if rest[length..].starts_with('.') && digits(&rest[length + 1..]) > 0 {
                length += 1 + digits(&rest[length + 1..]);
                is_double = true;
            }
            if rest[length..].starts_with(['e', 'E']) {
                let signed = usize::from(rest[length + 1..].starts_with(['+', '-']));
                let exponent = digits(&rest[length + 1 + signed..]);
                if exponent > 0 {
                    length += 1 + signed + exponent;
                    is_double = true;
                }
            }
            (length, 10, is_double)
        };
        let text = rest[..length].to_owned();
        let unsigned = !is_double && rest[length..].starts_with(['u', 'U']);
        self.at += length + usize::from(unsigned);
        if self.rest().starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return Err(
                self.mistake(self.at, "a number ends here, and something else begins without a blank")
            );
        }
        if is_double {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            return number.map(Token::Double).ok_or_else(|| self.mistake(begin, "is too large for a double"));
        }
        let digits = if radix == 16 { &text[2..] } else { &text[..] };
        let number = u64::from_str_radix(digits, radix);
        let number = number.map_err(|_| self.mistake(begin, "is not an integer of 64 bits"))?;
        Ok(if unsigned { Token::Uint(number) } else { Token::Int(number) })
    }

    fn text(&mut self, raw: bool, quote: &'static str) -> Result<Token, Mistake> {
        let begin = self.at;
        self.at += usize::from(raw) + quote.len();
        let mut text = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(quote) {
                self.at += quote.len();
                return Ok(Token::Text(text));
            }
            let Some(next) = rest.chars().next() else {
                return Err(self.mistake(begin, format!("a string begins here and never ends with {quote}")));
            };
            if next == '\n' && quote.len() == 1 {
                return Err(self.mistake(begin, "a string must end on its line; a newline inside is \\n"));
            }
            if next == '\\' && !raw {
                text.push(self.escape()?);
            } else {
                text.push(next);
                self.at += next.len_utf8();
            }
        }
    }

    fn escape(&mut self) -> Result<char, Mistake> {
        let begin = self.at;
        let rest = &self.source[begin + 1..];
        let wrong = || self.mistake(begin, "unknown escape; a backslash itself is written \\\\");
        let kind = rest.chars().next().ok_or_else(wrong)?;
        let simple = match kind {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'f' => Some('\x0c'),
            'v' => Some('\x0b'),
            '\\' | '\'' | '"' | '`' | '?' => Some(kind),
            _ => None,
        };
        if let Some(character) = simple {
            self.at += 2;
            return Ok(character);
        }
        let (skip, length, radix) = match kind {
            'x' | 'X' => (1, 2, 16),
            'u' => (1, 4, 16),
            'U' => (1, 8, 16),
            '0'..='3' => (0, 3, 8),
            _ => return Err(wrong()),
        };
        let digits = rest.get(skip..skip + length).filter(|digits| digits.chars().all(|c| c.is_digit(radix)));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok()).and_then(char::from_u32);
        let character = code.ok_or_else(wrong)?;
        self.at += 1 + skip + length;
        Ok(character)
    }
}

/// Whether a string begins here, whether it is raw, and how it will end.
fn string_start(rest: &str) -> Option<(bool, &'static str)> {
    let (raw, quoted) = match rest.strip_prefix(['r', 'R']) {
        Some(quoted) if quoted.starts_with(['\'', '"']) => (true, quoted),
        _ => (false, rest),
    };
    let quotes = ["'''", "\"\"\"", "'", "\""];
    quotes.into_iter().find(|quote| quoted.starts_with(quote)).map(|quote| (raw, quote))
}

//! Signature Version 4: a request's fields and body come in, the value of its `authorization` goes out. Pure; the time is
//! handed in.
//!
//! Both services take one path (`/`), no query and the method `POST`, so what makes the rules long elsewhere, the order and the
//! encoding of paths and queries, has no place here.

use flare_model::time::Timestamp;
use ring::{digest, hmac};

use super::credentials::Credentials;

/// Where a signature is good: a day, a region, a service.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'s> {
    /// When, as [`moment`] writes it.
    pub moment: &'s str,
    /// Where.
    pub region: &'s str,
    /// For what, `sqs` for one.
    pub service: &'s str,
}

/// A moment as signatures have it: `20150830T123600Z`.
pub fn moment(at: Timestamp) -> String {
    let written = at.to_string();
    let whole = written.split('.').next().unwrap_or(&written);
    let mut moment: String = whole.chars().filter(|letter| !matches!(letter, '-' | ':')).collect();
    moment.push('Z');
    moment
}

/// The value of `authorization` for a `POST` to `/` with these fields, in lower case and in alphabetical order, and this body.
pub fn authorization(
    credentials: &Credentials,
    scope: Scope<'_>,
    fields: &[(&str, &str)],
    body: &[u8],
) -> String {
    let day = scope.moment.split('T').next().unwrap_or(scope.moment);
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut canonical = String::from("POST\n/\n\n");
    for (name, value) in fields {
        canonical.push_str(&format!("{name}:{}\n", value.trim()));
    }
    canonical.push_str(&format!("\n{names}\n{}", hash(body)));
    let to_sign = format!("AWS4-HMAC-SHA256\n{}\n{place}\n{}", scope.moment, hash(canonical.as_bytes()));
    let mut key = sign(format!("AWS4{}", credentials.secret_access_key).as_bytes(), day);
    for part in [scope.region, scope.service, "aws4_request"] {
        key = sign(key.as_ref(), part);
    }
    let signature = hex(sign(key.as_ref(), &to_sign).as_ref());
    let id = &credentials.access_key_id;
    format!("AWS4-HMAC-SHA256 Credential={id}/{place}, SignedHeaders={names}, Signature={signature}")
}

fn sign(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    fn credentials() -> Credentials {
        Credentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
            expires: None,
        }
    }

    /// The vendor's published vectors that are a `POST` to `/`.
    #[test]
    fn published_vectors_have_the_signatures_that_are_published() {
        let at: Timestamp = "2015-08-30T12:36:00Z".parse().expect("a time");
        let moment = moment(at);
        assert_eq!(moment, "20150830T123600Z");
        let scope = Scope { moment: &moment, region: "us-east-1", service: "service" };
        let (host, date) = (("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z"));
        let form = ("content-type", "application/x-www-form-urlencoded");
        let token = ("x-amz-security-token", TOKEN);
        let vectors = [
            (
                "post-vanilla",
                vec![host, date],
                "",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "post-x-www-form-urlencoded",
                vec![form, host, date],
                "Param1=value1",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            (
                "post-sts-header-before",
                vec![host, date, token],
                "",
                "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
            ),
        ];
        for (name, fields, body, signature) in vectors {
            let written = authorization(&credentials(), scope, &fields, body.as_bytes());
            let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={}, Signature={signature}",
                names.join(";")
            );
            assert_eq!(written, expected, "{name}");
        }
    }
}

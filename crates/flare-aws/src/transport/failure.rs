//! Why an operation was not done. What a service answered comes in; what follows for a consumer or a producer goes out.

use flare_provider::bridge::{BridgeError, BridgeErrorKind, Sent};
use flare_wire::Answer;
use serde::Deserialize;

/// Why there is no result.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Nothing was sent: nobody is there, or there are no credentials.
    Unsent(String),
    /// It may have been done.
    Unanswered(String),
    /// The service refused it.
    Refused(Refusal),
}

/// What a service says when it refuses.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// The service's word for it, without what stands before it.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether the service says of an entry of a batch that it is not the sender's fault: it was not done, and may be later.
    pub later: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    #[serde(rename = "__type")]
    kind: String,
    #[serde(alias = "Message")]
    message: String,
}

/// What the services call something that does not exist.
const MISSING: [&str; 4] =
    ["QueueDoesNotExist", "NonExistentQueue", "QueueDeletedRecently", "ResourceNotFoundException"];

/// What they say when it is too much at once.
const SLOWER: [&str; 12] = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "KMSThrottlingException",
    "LimitExceededException",
    "OverLimit",
    "SlowDown",
];

/// What they say of credentials that are over or not known; others may be good.
const CREDENTIALS: [&str; 5] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "InvalidToken",
];

/// What they say of who may not, or of a signature: nothing is wrong with the message.
const NOT_ALLOWED: [&str; 9] = [
    "AccessDenied",
    "AccessDeniedException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "IncompleteSignature",
    "OptInRequired",
    "NotAuthorized",
];

impl Refusal {
    /// Reads an answer that is not 200.
    pub fn read(answer: &Answer) -> Refusal {
        let written: Written = serde_json::from_slice(&answer.excerpt).unwrap_or_default();
        let header = answer.fields.get("x-amzn-errortype").and_then(|value| std::str::from_utf8(value).ok());
        let kind = match written.kind.is_empty() {
            true => header.unwrap_or_default(),
            false => &written.kind,
        };
        let mut refusal = Refusal::new(kind, &written.message);
        refusal.status = answer.status;
        refusal
    }

    /// One that stands in an entry of a batch. `com.amazonaws.sqs#X`, `AWS.SimpleQueueService.X` and `X:http://…` are all `X`.
    pub fn new(kind: &str, message: &str) -> Refusal {
        let kind = kind.split(':').next().unwrap_or(kind);
        let code = kind.rsplit(['#', '.']).next().unwrap_or(kind);
        Refusal { status: 400, code: code.to_owned(), message: message.to_owned(), later: false }
    }

    /// Whether the service says so of itself, or of too much at once: later it may be otherwise.
    pub fn passes(&self) -> bool {
        self.later || self.status >= 500 || self.is(&SLOWER)
    }

    fn is(&self, codes: &[&str]) -> bool {
        codes.contains(&self.code.as_str())
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code.is_empty(), self.message.is_empty()) {
            (true, true) => write!(f, "it answered {}", self.status),
            (true, false) => f.write_str(&self.message),
            (false, true) => f.write_str(&self.code),
            (false, false) => write!(f, "{}: {}", self.code, self.message),
        }
    }
}

impl Failure {
    /// Whether it is the service's word for this.
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Failure::Refused(refusal) if refusal.code == code)
    }

    /// Whether what was asked for does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Failure::Refused(refusal) if refusal.is(&MISSING))
    }

    /// Whether it was too much at once.
    pub fn is_too_much(&self) -> bool {
        matches!(self, Failure::Refused(refusal) if refusal.is(&SLOWER))
    }

    /// Whether other credentials might do.
    pub fn is_about_credentials(&self) -> bool {
        matches!(self, Failure::Refused(refusal) if refusal.is(&CREDENTIALS))
    }

    /// What follows for a consumer.
    pub fn kind(&self) -> BridgeErrorKind {
        match self {
            Failure::Refused(refusal) if refusal.is(&MISSING) => BridgeErrorKind::Missing,
            Failure::Refused(refusal) if !refusal.passes() => BridgeErrorKind::Refused,
            _ => BridgeErrorKind::Unavailable,
        }
    }

    /// As the contract has it; `doing` says what was being done.
    pub fn error(&self, doing: &str) -> BridgeError {
        BridgeError::new(self.kind(), format!("{doing}: {self}"))
    }

    /// What became of a message whose whole batch failed so.
    pub fn sent(&self, doing: &str) -> Sent {
        let words = format!("{doing}: {self}");
        match self {
            Failure::Unsent(_) => Sent::Failed(words),
            Failure::Unanswered(_) => Sent::Unknown(words),
            // The service may have done it before it failed.
            Failure::Refused(refusal) if refusal.status >= 500 && !refusal.is(&SLOWER) => {
                Sent::Unknown(words)
            }
            // Somebody can mend these, and then the message goes through.
            Failure::Refused(refusal)
                if refusal.later
                    || refusal.is(&SLOWER)
                    || refusal.is(&CREDENTIALS)
                    || refusal.is(&NOT_ALLOWED) =>
            {
                Sent::Failed(words)
            }
            Failure::Refused(_) => Sent::Refused(words),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Unsent(why) | Failure::Unanswered(why) => f.write_str(why),
            Failure::Refused(refusal) => refusal.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_an_answer_is_what_the_services_mean_by_it() {
        use BridgeErrorKind as Kind;
        let delivered = |sent: &Sent| match sent {
            Sent::Delivered => "delivered",
            Sent::Refused(_) => "refused",
            Sent::Failed(_) => "failed",
            Sent::Unknown(_) => "unknown",
        };
        for (status, kind, follows, became) in [
            (400, "com.amazonaws.sqs#QueueDoesNotExist", Kind::Missing, "refused"),
            (400, "AWS.SimpleQueueService.NonExistentQueue", Kind::Missing, "refused"),
            (400, "ResourceNotFoundException", Kind::Missing, "refused"),
            (403, "AccessDeniedException:http://internal", Kind::Refused, "failed"),
            (403, "InvalidClientTokenId", Kind::Refused, "failed"),
            (400, "ProvisionedThroughputExceededException", Kind::Unavailable, "failed"),
            (503, "ThrottlingException", Kind::Unavailable, "failed"),
            (500, "InternalFailure", Kind::Unavailable, "unknown"),
            (502, "", Kind::Unavailable, "unknown"),
            (400, "ValidationException", Kind::Refused, "refused"),
        ] {
            let failure = Failure::Refused(Refusal { status, ..Refusal::new(kind, "why") });
            assert_eq!(failure.kind(), follows, "{kind}");
            assert_eq!(delivered(&failure.sent("sending")), became, "{kind}");
        }
        assert_eq!(delivered(&Failure::Unsent(String::new()).sent("sending")), "failed");
        assert_eq!(delivered(&Failure::Unanswered(String::new()).sent("sending")), "unknown");
    }
}

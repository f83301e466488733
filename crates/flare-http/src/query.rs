//! Query parameters with a meaning: each comes in as text; a number or a duration goes out, or a 400 that names it.

use flare_model::duration::HumanDuration;

use super::error::ApiError;

/// A whole number.
pub fn number(name: &str, value: &str) -> Result<u64, ApiError> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than fit are too many in any case.
    let number = digits.then(|| value.parse().unwrap_or(u64::MAX));
    number.ok_or_else(|| ApiError::bad_request(format!("{name} must be a whole number, got `{value}`")))
}

/// A duration such as `300ms`.
pub fn duration(name: &str, value: &str) -> Result<HumanDuration, ApiError> {
    HumanDuration::parse(value).map_err(|error| ApiError::bad_request(format!("{name}: {error}")))
}

//! The expressions of a subscription, checked: `filter` and `when` come in as text and go out compiled.

use std::sync::Arc;

use super::Draft;
use crate::filter::{Filter, Purpose};
use crate::invalid::Invalid;
use crate::resource::Resource;

/// `filter` and `when`, each if given.
pub(super) type Expressions = (Option<Arc<Filter>>, Option<Arc<Filter>>);

/// Compiles both; a mistake is named with its place.
pub(super) fn expressions(draft: &Draft, resource: &Resource) -> Result<Expressions, Invalid> {
    let compile = |field: &str, source: &Option<String>, purpose: Purpose| {
        let Some(source) = source else { return Ok(None) };
        let compiled = Filter::compile(source, purpose, Some(resource.wildcards()));
        compiled.map(Arc::new).map(Some).map_err(|mistake| Invalid::new(field, mistake))
    };
    let filter = compile("filter", &draft.filter, Purpose::Membership)?;
    let when = compile("when", &draft.when, Purpose::Telling)?;
    Ok((filter, when))
}

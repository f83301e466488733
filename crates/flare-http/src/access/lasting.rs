//! Answers that go on: a stream ends when its token is no longer good, as if it had been asked for then.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use flare_core::operations::App;
use futures_util::StreamExt as _;
use hyper::body::Body as _;

/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The same answer, until the token is revoked or expires. One whose length is known is on its way already.
pub fn until_revoked(app: &Arc<App>, token: Vec<u8>, answer: Response) -> Response {
    if answer.body().size_hint().exact().is_some() {
        return answer;
    }
    let app = app.clone();
    let gone = async move {
        let is_good =
            || app.access.as_ref().is_some_and(|access| access.caller(&token, None, app.clock.now()).is_ok());
        while is_good() {
            tokio::time::sleep(LOOK).await;
        }
    };
    answer.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(gone))))
}

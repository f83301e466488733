//! The tombstone of one document: shown, and removed where no feed needs it.

use flare_model::access::Caller;
use flare_model::document::{Document, Row};
use flare_model::ids::LaneId;
use flare_model::url::DocumentUrl;
use roaring::RoaringTreemap;

use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::housekeeping::retention::has_anything;

impl App {
    /// The tombstone of a url, as the resource has it that the url belongs to now.
    pub async fn tombstone(&self, by: &Caller, url: &DocumentUrl) -> Done<Document> {
        let unknown = || Failure::NotFound(format!("there is no tombstone of {url}"));
        let resource = self.registry.find_for(by, url).ok_or_else(unknown)?;
        let found = self.store.documents.get(resource.lane_of(url.as_str()), url.as_str()).await?;
        found.filter(|document| document.row.deleted).ok_or_else(unknown)
    }

    /// Removes the tombstone of a url, before its time: whatever its origin says next is new. Refused while a feed needs
    /// it to tell its client of the delete. May be dropped at any await: what it does last is to count it no more, and it
    /// lies below every cursor, beyond which is counted.
    pub async fn remove_tombstone(&self, by: &Caller, url: &DocumentUrl) -> Done<()> {
        let Document { row, lane, updated_at, .. } = self.tombstone(by, url).await?;
        self.refuse_if_needed(url, lane, &row).await?;
        let before = updated_at.moved(1);
        // A tombstone that comes later lies beyond this one: those before it are all that have to be kept.
        let documents = &self.store.documents;
        let mut older =
            documents.tombstones(lane, row.seq, before, &RoaringTreemap::new(), usize::MAX).await?;
        older.retain(|(ordinal, _)| *ordinal != row.ordinal);
        let keep = older.iter().map(|(ordinal, _)| ordinal.0).collect();
        self.journey.pass_over(lane, |document| document.row == row);
        let sweeper = self.sweeper().await?;
        if documents.remove_tombstones(sweeper, lane, row.seq, before, &keep, 1).await? == 0 {
            return Err(Failure::NotFound(format!("there is no tombstone of {url} any more")));
        }
        self.journey.removed(lane, &[(row.ordinal, row.seq)]);
        self.journey.observe().counts().retention.tombstones.add_among_many(1);
        tracing::info!(document = %url, "tombstone removed on request");
        Ok(())
    }

    async fn refuse_if_needed(&self, url: &DocumentUrl, lane: LaneId, row: &Row) -> Done<()> {
        let (_, followers) = self.followers_at(lane).await?;
        for subscription in followers {
            let Some(needs) = self.needs(&subscription, lane).await else {
                match self.is_gone(&subscription)? {
                    true => continue,
                    false => return Err(self.left(&subscription)),
                }
            };
            let starts_over =
                subscription.stored.disabled.as_ref().is_some_and(|disabled| disabled.start_over);
            let why = if starts_over {
                let may_have =
                    has_anything(&subscription.stored, &needs) || needs.has.contains(row.ordinal.0);
                may_have.then_some("is disabled, and tells its client of the delete when it is resumed")
            } else if needs.documents.contains(row.ordinal.0) {
                Some("has yet to tell its client of the delete, or is not sure that it has")
            } else if needs.cursor < row.seq {
                Some("has not come to the delete yet")
            } else {
                None
            };
            if let Some(why) = why {
                let id = subscription.id();
                let detail = format!("the tombstone of {url} is needed: subscription {id} {why}");
                return Err(Failure::Conflict(detail));
            }
        }
        Ok(())
    }
}

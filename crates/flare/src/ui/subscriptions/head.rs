//! What every page of one subscription begins with: its id comes in, and its name, state and tabs go out.

use std::sync::Arc;

use flare_core::operations::{App, Done, Failure, StatusView};
use flare_core::registry::Subscription;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::subscription::{Mode, Status};

use crate::ui::page::{Frame, Section, Visit};
use crate::ui::text;

/// The pages of a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// How it stands.
    Overview,
    /// What was sent, and what came back.
    Attempts,
    /// What its client has.
    Documents,
    /// What its client has taken and not settled.
    Leases,
    /// What was given up.
    DeadLetters,
    /// What was asked for again.
    Replays,
    /// A notification to try it out.
    Test,
    /// What signs.
    Secret,
    /// Its settings.
    Edit,
}

/// A tab as it is shown.
pub struct TabView {
    /// Its name.
    pub label: &'static str,
    /// Its icon.
    pub icon: &'static str,
    /// Its address.
    pub href: String,
    /// Whether this is its page.
    pub here: bool,
    /// Whether it is for changing something.
    pub changes: bool,
    /// How much there is, where that matters.
    pub count: Option<String>,
}

/// The head of a page of a subscription.
pub struct Head {
    /// The subscription.
    pub subscription: Arc<Subscription>,
    /// How it stands.
    pub status: StatusView,
    /// The page.
    pub tab: Tab,
}

/// A subscription by its id.
pub fn find(app: &App, id: &str) -> Done<Arc<Subscription>> {
    let found = app.registry.subscription_by_id(&SubscriptionId::new(id));
    let kind = SubscriptionId::new(id).kind();
    found.ok_or_else(|| Failure::NotFound(format!("there is no {kind} {id}; it may have been deleted")))
}

/// The ids that operations take.
pub fn ids(subscription: &Subscription) -> (ResourceId, SubscriptionId) {
    (subscription.compiled.resource.id().clone(), subscription.id().clone())
}

/// The address of a subscription's page.
pub fn place(id: &impl std::fmt::Display) -> String {
    format!("/ui/subscriptions/{id}")
}

/// The states, as they are chosen from.
pub const STATES: [Status; 5] =
    [Status::Active, Status::Preparing, Status::Failing, Status::Paused, Status::Disabled];

impl Head {
    /// The head of a page of this subscription.
    pub async fn of(app: &App, id: &str, tab: Tab) -> Done<Head> {
        let subscription = find(app, id)?;
        let (resource, id) = ids(&subscription);
        let status = app.status(&resource, &id).await?;
        Ok(Head { subscription, status, tab })
    }

    /// The frame around the page.
    pub fn frame(&self, visit: Visit, title: impl Into<String>) -> Frame {
        let resource = &self.subscription.compiled.resource;
        let frame = visit.frame(Section::Subscriptions, title);
        let frame = match self.is_producer() {
            false => frame.under("Subscriptions", "/ui/subscriptions"),
            true => frame,
        };
        let siblings = if self.is_producer() { "producers" } else { "subscriptions" };
        let siblings = format!("{}/{siblings}", self.resource_place());
        let frame = frame.under(resource.view.endpoint.as_str(), siblings);
        match self.tab {
            Tab::Overview => frame,
            _ => frame.under(self.name(), self.place()),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        text::client(&self.subscription)
    }

    /// Its id.
    pub fn id(&self) -> &SubscriptionId {
        self.subscription.id()
    }

    /// The ids that operations take.
    pub fn ids(&self) -> (ResourceId, SubscriptionId) {
        ids(&self.subscription)
    }

    /// The address of its page.
    pub fn place(&self) -> String {
        place(self.id())
    }

    /// Whether it is a producer.
    pub fn is_producer(&self) -> bool {
        self.id().is_producer()
    }

    /// The address of what it follows.
    pub fn resource_place(&self) -> String {
        let resource = &self.subscription.compiled.resource;
        format!("/ui/{}s/{}", resource.kind(), resource.id())
    }

    /// The address of its settings.
    pub fn edit_place(&self) -> String {
        match self.is_producer() {
            true => format!("/ui/producers/{}/edit", self.id()),
            false => format!("{}/edit", self.place()),
        }
    }

    /// Its state in a word.
    pub fn state(&self) -> &'static str {
        self.status.status.as_str()
    }

    /// Whether it gets nothing until it asks.
    pub fn is_passive(&self) -> bool {
        self.subscription.compiled.spec.mode == Mode::Passive
    }

    /// The tabs.
    pub fn tabs(&self) -> Vec<TabView> {
        let place = self.place();
        let dead = self.status.feed.dead_letters;
        let tab = |tab, label, icon, path: &str| TabView {
            label,
            icon,
            href: format!("{place}{path}"),
            here: self.tab == tab,
            changes: matches!(tab, Tab::Test | Tab::Edit),
            count: (tab == Tab::DeadLetters && dead > 0).then(|| text::number(dead)),
        };
        let mut tabs = vec![
            tab(Tab::Overview, "Overview", "activity", ""),
            tab(Tab::Attempts, "Attempts", "send", "/attempts"),
            tab(Tab::Documents, "Documents", "files", "/documents"),
            tab(Tab::DeadLetters, "Dead letters", "mail-x", "/dead-letters"),
            tab(Tab::Replays, "Replay", "rotate-clockwise", "/replays"),
            tab(Tab::Test, "Test", "test-pipe", "/test"),
            tab(Tab::Secret, "Secret", "key", "/secret"),
            TabView { href: self.edit_place(), ..tab(Tab::Edit, "Settings", "pencil", "") },
        ];
        if self.is_passive() || self.tab == Tab::Leases {
            tabs.insert(3, tab(Tab::Leases, "Leases", "inbox", "/leases"));
        }
        tabs
    }
}

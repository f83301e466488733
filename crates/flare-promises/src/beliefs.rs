//! What Flare can take a client to have of one document, for someone who sees every request and every answer, but not
//! which answers Flare got to see: a set of possible beliefs. From it follows which action may come next. Pure.
//!
//! This is the second promise said again: `create` when the client does not have the document or may not have it,
//! `update` when it has it, `delete` when it has it or may have it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Create,
    Update,
    Delete,
}

impl Action {
    pub fn named(name: &str) -> Option<Action> {
        match name {
            "create" => Some(Action::Create),
            "update" => Some(Action::Update),
            "delete" => Some(Action::Delete),
            _ => None,
        }
    }
}

/// How a request ended, as Flare sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Delivered,
    /// The client asked to drop it, which changes nothing about what it has.
    Discarded,
    /// Any other answer, or none: the client may have processed it.
    Failed,
}

/// One bit for each belief: held or not, in doubt or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beliefs(u8);

const LACKS: u8 = 1;
const LACKS_IN_DOUBT: u8 = 2;
const HAS: u8 = 4;
const HAS_IN_DOUBT: u8 = 8;

impl Beliefs {
    /// The client has nothing, and that is certain.
    pub const NOTHING: Beliefs = Beliefs(LACKS);

    fn of(action: Action) -> u8 {
        match action {
            Action::Create => LACKS | LACKS_IN_DOUBT | HAS_IN_DOUBT,
            Action::Update => HAS,
            Action::Delete => HAS | LACKS_IN_DOUBT | HAS_IN_DOUBT,
        }
    }

    /// Whether Flare may begin such a request.
    pub fn allow(self, action: Action) -> bool {
        self.0 & Beliefs::of(action) != 0
    }

    /// Such a request has begun: only beliefs that have it begin are left. After one that none of them allows nothing
    /// is known, so that one mistake is told once.
    pub fn after_begin(self, action: Action) -> Beliefs {
        match self.0 & Beliefs::of(action) {
            0 => Beliefs(Beliefs::of(action)),
            left => Beliefs(left),
        }
    }

    /// Such a request has ended.
    pub fn after_end(self, action: Action, ending: Ending) -> Beliefs {
        match ending {
            Ending::Delivered if action == Action::Delete => Beliefs(LACKS),
            Ending::Delivered => Beliefs(HAS),
            Ending::Discarded => self,
            // An update of what the client has leaves it with the document either way.
            Ending::Failed if action == Action::Update => self,
            Ending::Failed => Beliefs(self.doubted()),
        }
    }

    /// The client said so, and nobody knows whether Flare heard it.
    pub fn after_end_or_loss(self, action: Action, ending: Ending) -> Beliefs {
        Beliefs(self.after_end(action, ending).0 | self.after_end(action, Ending::Failed).0)
    }

    fn doubted(self) -> u8 {
        let lacks = if self.0 & (LACKS | LACKS_IN_DOUBT) != 0 { LACKS_IN_DOUBT } else { 0 };
        let has = if self.0 & (HAS | HAS_IN_DOUBT) != 0 { HAS_IN_DOUBT } else { 0 };
        lacks | has
    }

    /// Something may have been sent that nobody saw, or its outcome was lost (kill -9): all that was believed, or doubt.
    /// Never more certainty than before: an `update` still needs a client that surely has the document.
    pub fn or_doubt(self) -> Beliefs {
        Beliefs(self.0 | LACKS_IN_DOUBT | HAS_IN_DOUBT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_nothing_is_told_of_a_creation_alone() {
        let beliefs = Beliefs::NOTHING;
        assert!(beliefs.allow(Action::Create));
        assert!(!beliefs.allow(Action::Update) && !beliefs.allow(Action::Delete));
    }

    #[test]
    fn a_lost_create_leaves_doubt_that_a_success_ends() {
        let doubt = Beliefs::NOTHING.after_end(Action::Create, Ending::Failed);
        assert!(doubt.allow(Action::Create) && doubt.allow(Action::Delete) && !doubt.allow(Action::Update));
        let has = doubt.after_end(Action::Create, Ending::Delivered);
        assert!(has.allow(Action::Update) && has.allow(Action::Delete) && !has.allow(Action::Create));
        assert_eq!(has.after_end(Action::Update, Ending::Failed), has, "a lost update leaves none");
    }

    #[test]
    fn a_kill_excuses_doubt_and_never_an_update_of_what_the_client_may_lack() {
        let gone = Beliefs(HAS).after_end(Action::Delete, Ending::Delivered).or_doubt();
        assert!(gone.allow(Action::Create) && gone.allow(Action::Delete) && !gone.allow(Action::Update));
    }

    #[test]
    fn what_begins_says_what_was_believed() {
        let either = Beliefs::NOTHING.after_end_or_loss(Action::Create, Ending::Delivered);
        assert!(either.allow(Action::Update) && either.allow(Action::Create));
        assert_eq!(either.after_begin(Action::Update), Beliefs(HAS));
    }
}

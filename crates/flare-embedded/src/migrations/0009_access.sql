-- Accounts and tokens are entities: the counts of their numbers.
INSERT INTO meta (name, value) VALUES ('last_account', 0), ('last_token', 0);

-- What was done, by whom: only added to, and removed from its old end. `body` is the business of those above the engine.
CREATE TABLE acts (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    account TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX acts_by_account ON acts (account, number);

-- Accounts and tokens are entities: the counts of their numbers.
INSERT INTO numbers (name, value) VALUES ('account', 0), ('token', 0);

-- What was done, by whom: only added to, and removed from its old end. `body` is the business of those above the engine.
CREATE TABLE acts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    account text COLLATE "C" NOT NULL,
    body text NOT NULL
);
CREATE INDEX acts_by_account ON acts (account, number);

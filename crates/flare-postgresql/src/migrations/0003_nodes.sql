-- What was deleted, by the version of the catalog that did it, for nodes that follow the catalog. Forgotten after a while: the
-- number `forgotten` says up to which version. Of what was deleted before this migration there is no trace.
CREATE TABLE deletions (
    version bigint PRIMARY KEY,
    kind text NOT NULL,
    number bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX entities_by_version ON entities (version);

-- `sweeper` is the epoch under which is swept what nobody needs.
INSERT INTO numbers (name, value) SELECT 'forgotten', value FROM numbers WHERE name = 'catalog';
INSERT INTO numbers (name, value) VALUES ('sweeper', 0);

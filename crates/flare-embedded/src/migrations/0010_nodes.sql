-- What was deleted, by the version of the catalog that did it, for those who follow the catalog. Forgotten after a while: the meta
-- row says up to which version. Of what was deleted before this migration there is no trace.
CREATE TABLE deletions (
    version INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    deleted_at TEXT NOT NULL
) STRICT;
CREATE INDEX entities_by_version ON entities (version);
INSERT INTO meta (name, value) SELECT 'deletions_forgotten', value FROM meta WHERE name = 'catalog_version';

-- The epoch under which is swept what nobody needs.
INSERT INTO meta (name, value) VALUES ('sweeper', 0);

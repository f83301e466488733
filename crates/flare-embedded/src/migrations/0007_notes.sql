-- Why clients lack what nobody owes them: discarded (kind 0), given up and dropped (1), held back by `when` (2), no result
-- of an expression (3), asked for again while owed (4), the delete by a changed filter discarded (5), or given up and dropped
-- (6). One at most for each document of a feed.
CREATE TABLE notes (
    feed INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    story TEXT,
    PRIMARY KEY (feed, ordinal)
) STRICT, WITHOUT ROWID;
-- For reading which documents of a feed have one, without their stories.
CREATE INDEX notes_by_kind ON notes (feed, kind, ordinal);

-- Documents as a client last got them, for the subscriptions that need that; empty for all others. A plain rowid table,
-- since its rows hold content. `life` tells which life of the feed wrote the row: another one's is not believed, and
-- is replaced when the document is next delivered.
CREATE TABLE kept (
    id INTEGER PRIMARY KEY,
    feed INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    life INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    nanos INTEGER NOT NULL,
    revision_text TEXT,
    content BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX kept_by_document ON kept (feed, ordinal);

-- The life whose states are believed.
ALTER TABLE feeds ADD COLUMN life INTEGER NOT NULL DEFAULT 0;

-- Older revisions, for subscriptions that want every one.

-- Whether what is replaced is kept, and how many older revisions there are.
ALTER TABLE lanes ADD COLUMN keeps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN revisions INTEGER NOT NULL DEFAULT 0;

-- Whether a subscription wants every revision.
ALTER TABLE entities ADD COLUMN history INTEGER NOT NULL DEFAULT 0;

-- Of what was replaced up to `since` a feed sees nothing; null for one that sends only the newest.
ALTER TABLE feeds ADD COLUMN since INTEGER;
ALTER TABLE feeds ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;

-- What a document was before: moved here by the commit that replaces it. `place` is the lane's id shifted left by
-- 40 bits and the seq, `document` the same with the ordinal, `until` the seq of the change that replaced it.
CREATE TABLE history (
    place INTEGER PRIMARY KEY,
    document INTEGER NOT NULL,
    born INTEGER NOT NULL,
    before INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    nanos INTEGER NOT NULL,
    revision_text TEXT,
    updated_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    url TEXT NOT NULL,
    content BLOB NOT NULL
) STRICT;
-- The next one of a document; and all that has to be known to remove them, without reading their contents.
CREATE INDEX history_by_document ON history (document, place, until, replaced_at);

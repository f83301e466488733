-- The shape of a Flare database. Page size and auto_vacuum are set just before this runs, while the file is
-- still empty; later that would take a full VACUUM.

-- Single numbers: incarnation, catalog_version, last_resource, last_subscription, last_lane, last_epoch.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Resources and subscriptions. Small: a few thousand rows.
CREATE TABLE entities (
    kind TEXT NOT NULL,
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    parent TEXT,
    keys TEXT NOT NULL,
    body TEXT NOT NULL,
    lanes INTEGER NOT NULL,
    PRIMARY KEY (kind, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entities_by_id ON entities (kind, id);
CREATE INDEX entities_by_parent ON entities (parent);

-- Who has which key. The scope is '' without a parent, and '/' and the parent's id with one.
CREATE TABLE entity_keys (
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (kind, scope, key)
) STRICT, WITHOUT ROWID;

-- The lanes. Their own small number `id` stands in the keys below, so that these stay short. Counts are kept
-- here, since counting a million documents takes seconds. A lane that is gone waits for its documents to go.
CREATE TABLE lanes (
    id INTEGER PRIMARY KEY,
    resource INTEGER NOT NULL,
    place INTEGER NOT NULL,
    head INTEGER NOT NULL,
    next_ordinal INTEGER NOT NULL,
    documents INTEGER NOT NULL,
    tombstones INTEGER NOT NULL,
    gone INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX lanes_by_resource ON lanes (resource, place);

-- The newest state of each document. A plain rowid table whose ids only grow: a new row goes to the end of the
-- tree and fills its pages. Keyed by lane and ordinal, rows would go into the middle and split pages there.
-- The content comes last: what is compared in a commit is read without it.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    born INTEGER NOT NULL,
    before INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    nanos INTEGER NOT NULL,
    revision_text TEXT,
    updated_at INTEGER NOT NULL,
    url TEXT NOT NULL,
    content BLOB NOT NULL
) STRICT;
-- Tombstones alone, so that looking for them does not read the living. Not `deleted = 1`: SQLite would compile every
-- statement on this table again with each value bound to it, to see whether that value happens to be this 1.
CREATE INDEX tombstones ON documents (lane, seq, updated_at, ordinal) WHERE deleted;

-- The three ways to a document. These are tables and not indexes because they are written late and in order:
-- each commit adds its changes to `journal` (one row, at the end), the engine keeps them in memory, and once
-- there are many they are folded into these tables sorted, many to a page. As plain indexes, a commit of 16 new
-- documents rewrote 27 pages instead of 9 and took twice as long, and every update of one in a million documents
-- rewrote a second page somewhere, which the disk has to write at random. A `place` is the lane's id shifted left by 40 bits, and the ordinal or seq.
-- An entry whose document has moved on, or is gone, is stale: a reader compares it with the document's row.
CREATE TABLE by_url (
    hash INTEGER NOT NULL,
    document INTEGER NOT NULL,
    PRIMARY KEY (hash, document)
) STRICT, WITHOUT ROWID;
CREATE TABLE by_ordinal (
    place INTEGER PRIMARY KEY,
    document INTEGER NOT NULL
) STRICT;
CREATE TABLE by_seq (
    place INTEGER PRIMARY KEY,
    document INTEGER NOT NULL
) STRICT;
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    changes BLOB NOT NULL
) STRICT;

-- One lane of one subscription: what the client has of it. The id is the lane's place shifted left by 40 bits,
-- and the number of the subscription: a change in a lane moves that lane's feed of many subscriptions, and so
-- they lie side by side. `held_delta` are the newest changes of `held`, not yet folded into it.
CREATE TABLE feeds (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    issued INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    discarded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    last_success_at INTEGER,
    failure_at INTEGER,
    failure_status INTEGER,
    failure_error TEXT,
    sweep BLOB,
    ahead BLOB,
    held_delta BLOB NOT NULL
) STRICT;

-- What the client has: a Roaring bitmap for each 65,536 ordinals.
CREATE TABLE held (
    feed INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    bits BLOB NOT NULL,
    PRIMARY KEY (feed, chunk)
) STRICT, WITHOUT ROWID;

-- Documents of a feed that are waiting (state 0), given up (1) or only doubtful (2).
CREATE TABLE standings (
    feed INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    doubt INTEGER NOT NULL,
    state INTEGER NOT NULL,
    due INTEGER,
    replay INTEGER NOT NULL,
    trouble TEXT,
    PRIMARY KEY (feed, ordinal)
) STRICT, WITHOUT ROWID;
-- For counting and for paging, and for reading the dead of a feed without their stories.
CREATE INDEX standings_by_state ON standings (feed, state, ordinal, doubt);

-- What belonged to a deleted entity and is still to be removed, slice by slice.
CREATE TABLE leavings (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key INTEGER NOT NULL,
    journal INTEGER NOT NULL
) STRICT;

-- The incarnation is this log's own: another database, and a restored one, has another.
INSERT INTO meta (name, value) VALUES
    ('incarnation', random()),
    ('catalog_version', 0),
    ('last_resource', 0),
    ('last_subscription', 0),
    ('last_lane', 0),
    ('last_epoch', 0);

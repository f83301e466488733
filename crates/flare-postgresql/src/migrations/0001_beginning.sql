-- The shape of a Flare schema in PostgreSQL. Every key begins with the lane or the feed, whose numbers are never reused:
-- what belonged to a deleted one is out of sight at once, and removed later in slices.

-- Single numbers: incarnation, timeline, writer, catalog, routing, resource, subscription, epoch.
CREATE TABLE numbers (
    name text PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 10);

-- Resources and subscriptions. Small: a few thousand rows.
CREATE TABLE entities (
    kind text NOT NULL,
    number bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    parent text COLLATE "C",
    keys text NOT NULL,
    body text NOT NULL,
    lanes integer NOT NULL,
    history boolean NOT NULL,
    PRIMARY KEY (kind, number)
);
CREATE UNIQUE INDEX entities_by_id ON entities (kind, id);
CREATE INDEX entities_by_parent ON entities (parent);

-- Who has which key. The scope is '' without a parent, and '/' and the parent's id with one.
CREATE TABLE entity_keys (
    kind text NOT NULL,
    scope text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (kind, scope, key)
);

-- The lanes. The id is the number of the resource shifted left by 8 bits, and the lane's place in it. A commit locks the
-- rows of its lanes until it is durable: that is what makes seqs visible in order. Every commit updates one, so pages are
-- nearly empty: the next version of a row fits beside it, and no index is touched.
CREATE TABLE lanes (
    id bigint PRIMARY KEY,
    head bigint NOT NULL DEFAULT 0,
    next_ordinal bigint NOT NULL DEFAULT 0,
    documents bigint NOT NULL DEFAULT 0,
    tombstones bigint NOT NULL DEFAULT 0,
    revisions bigint NOT NULL DEFAULT 0,
    keeps boolean NOT NULL DEFAULT false
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The newest state of each document. Ordered by seq within its lane, this table is the log.
CREATE TABLE documents (
    lane bigint NOT NULL,
    ordinal bigint NOT NULL,
    seq bigint NOT NULL,
    born bigint NOT NULL,
    before bigint NOT NULL,
    deleted boolean NOT NULL,
    revision bigint NOT NULL,
    nanos integer NOT NULL,
    revision_text text,
    updated_at bigint NOT NULL,
    hash bigint NOT NULL,
    url text COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (lane, ordinal)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
-- In the row itself as long as that fits on a page: a second table would be read for every document.
ALTER TABLE documents ALTER COLUMN content SET STORAGE MAIN;
CREATE UNIQUE INDEX documents_by_seq ON documents (lane, seq);
CREATE INDEX documents_by_url ON documents (lane, hash);
CREATE INDEX documents_tombstones ON documents (lane, seq) WHERE deleted;

-- What a document was before: moved here by the commit that replaces it, where a subscription wants every revision.
-- `until` is the seq of the change that replaced it.
CREATE TABLE history (
    lane bigint NOT NULL,
    ordinal bigint NOT NULL,
    seq bigint NOT NULL,
    born bigint NOT NULL,
    before bigint NOT NULL,
    deleted boolean NOT NULL,
    revision bigint NOT NULL,
    nanos integer NOT NULL,
    revision_text text,
    updated_at bigint NOT NULL,
    until bigint NOT NULL,
    replaced_at bigint NOT NULL,
    url text COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (lane, seq)
);
CREATE INDEX history_by_document ON history (lane, ordinal, seq);

-- One lane of one subscription: what the client has of it. The id is the number of the subscription shifted left by 8
-- bits, and the lane's place. `held_delta` are the newest changes of `held`, not yet folded into it. Updated all the time,
-- so most of a page stays free.
CREATE TABLE feeds (
    id bigint PRIMARY KEY,
    lane bigint NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    incarnation bigint NOT NULL,
    cursor bigint NOT NULL,
    issued bigint NOT NULL,
    judging bigint NOT NULL DEFAULT 0,
    life bigint NOT NULL DEFAULT 0,
    delivered bigint NOT NULL DEFAULT 0,
    discarded bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    since bigint,
    last_success_at bigint,
    failure_at bigint,
    failure_status integer,
    failure_error bytea,
    sweep bytea,
    ahead bytea,
    filtering bytea,
    unjudged bytea,
    judged bytea,
    health bytea,
    held_delta bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
-- Changed with every record: compressing and moving them aside would cost more than they take.
ALTER TABLE feeds ALTER COLUMN held_delta SET STORAGE PLAIN;

-- What the client has: a Roaring bitmap for each 65,536 ordinals.
CREATE TABLE held (
    feed bigint NOT NULL,
    chunk bigint NOT NULL,
    bits bytea NOT NULL,
    PRIMARY KEY (feed, chunk)
);

-- Documents of a feed that are waiting (state 0), given up (1), only doubtful (2), leased (3) or passed (4).
CREATE TABLE standings (
    feed bigint NOT NULL,
    ordinal bigint NOT NULL,
    seq bigint NOT NULL,
    doubt boolean NOT NULL,
    state smallint NOT NULL,
    due bigint,
    replay bigint NOT NULL,
    trouble text,
    PRIMARY KEY (feed, ordinal)
);
-- For counting and for paging, and for reading the dead of a feed without their stories.
CREATE INDEX standings_by_state ON standings (feed, state, ordinal) INCLUDE (doubt);

-- Why clients lack what nobody owes them; the kinds are in ledger/notes.rs. One at most for each document of a feed.
CREATE TABLE notes (
    feed bigint NOT NULL,
    ordinal bigint NOT NULL,
    seq bigint NOT NULL,
    kind smallint NOT NULL,
    story text,
    PRIMARY KEY (feed, ordinal)
);

-- Documents as a client last got them, for the subscriptions that need that. `life` tells which life of the feed wrote the
-- row: another one's is not believed.
CREATE TABLE kept (
    feed bigint NOT NULL,
    ordinal bigint NOT NULL,
    life bigint NOT NULL,
    revision bigint NOT NULL,
    nanos integer NOT NULL,
    revision_text text,
    content bytea NOT NULL,
    PRIMARY KEY (feed, ordinal)
);

-- What belonged to a deleted entity and is still to be removed: a lane's documents, or what a feed had.
CREATE TABLE leavings (
    kind text NOT NULL,
    key bigint NOT NULL,
    PRIMARY KEY (kind, key)
);

-- The incarnation is this log's own: another database, and a restored one, has another.
INSERT INTO numbers (name, value) VALUES
    ('incarnation', ('x' || substr(md5(random()::text || clock_timestamp()::text), 1, 15))::bit(60)::bigint + 1),
    ('timeline', 0),
    ('writer', 0),
    ('catalog', 0),
    ('routing', 0),
    ('resource', 0),
    ('subscription', 0),
    ('epoch', 0);

-- How nodes find each other: sessions, and keys that may belong to one. Whoever changes a key or ends a session raises the number
-- `coordination` first, which makes versions grow in the order of commits; renewals don't. Times are this server's clock alone.
CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    cluster text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    ttl bigint NOT NULL,
    ends timestamptz NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE cluster_keys (
    cluster text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    version bigint NOT NULL,
    session text COLLATE "C" REFERENCES sessions (id) ON DELETE CASCADE,
    PRIMARY KEY (cluster, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);
CREATE INDEX cluster_keys_by_session ON cluster_keys (session);

INSERT INTO numbers (name, value) VALUES ('coordination', 0);

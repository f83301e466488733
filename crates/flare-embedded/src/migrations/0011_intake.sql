-- How far consumers have read, by partition of their sources. `progress` is the business of those above the engine.
CREATE TABLE readings (
    consumer INTEGER NOT NULL,
    partition TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    progress TEXT,
    PRIMARY KEY (consumer, partition)
) STRICT, WITHOUT ROWID;

-- Messages that could not be read.
CREATE TABLE letters (
    number INTEGER PRIMARY KEY,
    consumer INTEGER NOT NULL,
    partition TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    story TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX letters_by_consumer ON letters (consumer, number);
INSERT INTO meta (name, value) VALUES ('last_letter', 0);

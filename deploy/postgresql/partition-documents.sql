-- Splits the table of documents by lane into eight partitions, each with indexes and a vacuum of its own: for schemas with many
-- millions of documents, where one vacuum of the whole takes too long. Needs as much free disk again as the table takes. Stop all
-- nodes first; give another schema by `SET search_path` where it is not called flare.
--
--   psql -v ON_ERROR_STOP=1 -c 'SET search_path = flare' -f deploy/postgresql/partition-documents.sql "$URL"
BEGIN;
ALTER TABLE documents RENAME TO documents_whole;
ALTER TABLE documents_whole RENAME CONSTRAINT documents_pkey TO documents_whole_pkey;
ALTER INDEX documents_by_seq RENAME TO documents_whole_by_seq;
ALTER INDEX documents_by_url RENAME TO documents_whole_by_url;
ALTER INDEX documents_tombstones RENAME TO documents_whole_tombstones;
CREATE TABLE documents (LIKE documents_whole INCLUDING DEFAULTS INCLUDING STORAGE, PRIMARY KEY (lane, ordinal))
    PARTITION BY HASH (lane);
DO $$
BEGIN
    FOR part IN 0..7 LOOP
        EXECUTE format(
            'CREATE TABLE documents_%s PARTITION OF documents FOR VALUES WITH (MODULUS 8, REMAINDER %s)
             WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)', part, part);
    END LOOP;
END $$;
INSERT INTO documents SELECT * FROM documents_whole;
CREATE UNIQUE INDEX documents_by_seq ON documents (lane, seq);
CREATE INDEX documents_by_url ON documents (lane, hash);
CREATE INDEX documents_tombstones ON documents (lane, seq) WHERE deleted;
DROP TABLE documents_whole;
COMMIT;

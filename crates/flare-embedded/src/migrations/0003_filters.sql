-- What a feed keeps for filters: see ledger/filtering.rs. NULL where there never was one.
ALTER TABLE feeds ADD COLUMN filtering BLOB;

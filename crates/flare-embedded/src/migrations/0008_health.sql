-- When things turned for a client: which of four moments there are, as bits, and each of these in milliseconds. NULL where
-- they never did.
ALTER TABLE feeds ADD COLUMN health BLOB;

-- Beside what is still to be judged after a crash: the documents that were judged by that mark already, as a Roaring
-- bitmap; NULL for none.
ALTER TABLE feeds ADD COLUMN judged BLOB;

-- What is still to be judged after a crash, kept over clean stops: the mark to judge by, and the documents that waited,
-- as a Roaring bitmap; NULL for none.
ALTER TABLE feeds ADD COLUMN judging INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN unjudged BLOB;

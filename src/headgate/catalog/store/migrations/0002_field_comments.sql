-- Comments on fields of records in a column, as JSON: a list of pairs of path and text.
ALTER TABLE columns ADD COLUMN fields TEXT;

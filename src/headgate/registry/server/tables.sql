CREATE TABLE schemas (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,  -- AUTOINCREMENT: an id is never given twice
  type        TEXT NOT NULL,
  text        TEXT,                               -- NULL: forgotten, no version has it any more
  refs        TEXT NOT NULL,                      -- JSON: [[name, subject, version], ...]
  fingerprint TEXT NOT NULL,
  normalized  TEXT NOT NULL                       -- fingerprint of the normalized schema
);
CREATE INDEX schemas_fingerprint ON schemas (fingerprint);
CREATE TABLE versions (
  subject TEXT NOT NULL,
  version INTEGER NOT NULL,
  id      INTEGER NOT NULL REFERENCES schemas (id),
  deleted INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (subject, version)
) WITHOUT ROWID;
CREATE INDEX versions_id ON versions (id);
CREATE TABLE uses (                               -- schema id refers to a version of a subject
  id      INTEGER NOT NULL REFERENCES schemas (id),
  subject TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (subject, version, id)
) WITHOUT ROWID;
CREATE TABLE configs (subject TEXT PRIMARY KEY, level TEXT, normalize INTEGER) WITHOUT ROWID;
CREATE TABLE modes (subject TEXT PRIMARY KEY, mode TEXT NOT NULL) WITHOUT ROWID;

-- Instants are microseconds of the epoch in UTC. Ids of objects are never used twice (state.next_id).

CREATE TABLE state (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    version  INTEGER NOT NULL,
    next_id  INTEGER NOT NULL
);

CREATE TABLE objects (
    id          INTEGER PRIMARY KEY,
    kind        TEXT    NOT NULL,
    parent      INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    created     INTEGER NOT NULL,
    statement   TEXT    NOT NULL,
    definition  TEXT,
    growth      TEXT,
    body        TEXT,
    next_column INTEGER NOT NULL,
    explicit    TEXT,
    imported    TEXT,
    suppressed  INTEGER NOT NULL,
    fillings    INTEGER NOT NULL
);

CREATE TABLE columns (
    object        INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    id            INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    nullable      INTEGER NOT NULL,
    key           INTEGER NOT NULL,
    origin_object INTEGER,
    origin_column INTEGER,
    explicit      TEXT,
    imported      TEXT,
    suppressed    INTEGER NOT NULL,
    fields        TEXT,  -- comments on fields of records in the column, as JSON: a list of pairs of path and text
    PRIMARY KEY (object, position)
) WITHOUT ROWID;

CREATE TABLE dependencies (
    object     INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    depends_on INTEGER NOT NULL,
    use        TEXT    NOT NULL,
    holds      INTEGER NOT NULL,
    PRIMARY KEY (object, position)
) WITHOUT ROWID;

CREATE TABLE secrets (
    object  INTEGER PRIMARY KEY,
    place   TEXT NOT NULL,  -- sealed, environment, file
    content TEXT NOT NULL
);

CREATE TABLE desired (
    task  INTEGER PRIMARY KEY,
    state TEXT NOT NULL
);

-- A statement of a megabyte that touches a thousand objects is stored once.
CREATE TABLE statements (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL
);

CREATE TABLE history (
    sequence  INTEGER PRIMARY KEY AUTOINCREMENT,
    time      INTEGER NOT NULL,
    object_id INTEGER NOT NULL,
    object    TEXT    NOT NULL,
    change    TEXT    NOT NULL,
    cause     TEXT    NOT NULL,
    position  TEXT,
    statement INTEGER
);

CREATE INDEX history_by_object ON history (object_id);

CREATE TABLE events (
    sequence  INTEGER PRIMARY KEY AUTOINCREMENT,
    time      INTEGER NOT NULL,
    object_id INTEGER NOT NULL,
    object    TEXT    NOT NULL,
    event     TEXT    NOT NULL,
    detail    TEXT
);

CREATE TRIGGER history_is_never_changed BEFORE UPDATE ON history
BEGIN SELECT RAISE(ABORT, 'the history only grows'); END;

CREATE TRIGGER history_is_never_cut BEFORE DELETE ON history
BEGIN SELECT RAISE(ABORT, 'the history only grows'); END;

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the event log only grows'); END;

CREATE TRIGGER events_are_never_cut BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the event log only grows'); END;

CREATE TABLE lease (
    only_row  INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch     INTEGER NOT NULL,
    holder    TEXT,           -- NULL: released
    host      TEXT,
    pid       INTEGER,
    started   REAL,
    since     INTEGER,
    heartbeat INTEGER
);

CREATE TABLE task_status (
    task    INTEGER PRIMARY KEY,
    state   TEXT    NOT NULL,
    since   INTEGER NOT NULL,
    error   TEXT,
    batch   INTEGER,
    rows    INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    lag     INTEGER,
    batches       INTEGER NOT NULL,
    batch_seconds REAL    NOT NULL,
    last_commit   INTEGER,
    failures      INTEGER NOT NULL,
    notice        TEXT,  -- which way the task runs, and why
    stored_bytes  INTEGER
);

CREATE TABLE ledgers (
    task       INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    positions  TEXT    NOT NULL,  -- JSON: {relation: position, ..}
    definition TEXT    NOT NULL
);

CREATE TABLE marks (
    task     INTEGER PRIMARY KEY,
    "end"    TEXT,  -- JSON as in ledgers; NULL: dropped
    attempts INTEGER NOT NULL
);

CREATE TABLE quarantine (
    sequence  INTEGER PRIMARY KEY AUTOINCREMENT,
    object    INTEGER NOT NULL,
    task      INTEGER NOT NULL,
    position  TEXT    NOT NULL,  -- JSON of the record's position
    batch     INTEGER,           -- number of the batch that met it
    time      INTEGER NOT NULL,
    schema_id INTEGER,
    path      TEXT,
    expected  TEXT,
    reason    TEXT    NOT NULL,
    raw       BLOB
);

-- One row per record and task, however often a batch is replayed.
CREATE UNIQUE INDEX quarantine_once ON quarantine (task, position);
CREATE INDEX quarantine_by_batch ON quarantine (task, batch);

-- What identifies a task outside of the catalog: two projects may share a cluster or a database.
CREATE TABLE task_uuids (
    task INTEGER PRIMARY KEY,
    uuid TEXT    NOT NULL
);

-- What identifies the project outside of the catalog: several projects may share a cluster.
CREATE TABLE project (
    uuid TEXT NOT NULL
);
INSERT INTO project VALUES (lower(hex(randomblob(16))));

-- Tasks whose target is a topic that holds their progress, and the partition of the project's progress topic that each has
-- for itself. A slot is given with the task's uuid and is free again when the task is dropped.
CREATE TABLE progress_slots (
    task   INTEGER PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE
);

-- Rejected records of one batch that are too many for this file. They are in a folder of the warehouse.
CREATE TABLE quarantine_folders (
    name    TEXT    PRIMARY KEY,  -- of the folder
    object  INTEGER NOT NULL,
    task    INTEGER NOT NULL,
    batch   INTEGER NOT NULL,     -- number of the batch that met them
    records INTEGER NOT NULL,
    state   TEXT    NOT NULL,     -- writing, kept (only these are shown) or leaving (to be removed)
    since   INTEGER NOT NULL      -- when it came into its state
);

CREATE INDEX quarantine_folders_by_task ON quarantine_folders (task, batch);

-- The storage of materialized views that were dropped, until it is removed from the warehouse.
CREATE TABLE leaving_views (
    uuid  TEXT    PRIMARY KEY,  -- of the view's task
    since INTEGER NOT NULL      -- when it was dropped
);

-- The gRPC message of each materialization ON DEMAND as clients last saw it, so that its fields keep their numbers.
CREATE TABLE row_messages (
    task INTEGER PRIMARY KEY,  -- the materialization
    file BLOB    NOT NULL      -- a serialized FileDescriptorProto
);

-- The last event that each web hook has received. A hook is known by the hash of its address.
CREATE TABLE web_hooks (
    hook     TEXT    PRIMARY KEY,
    sequence INTEGER NOT NULL
);

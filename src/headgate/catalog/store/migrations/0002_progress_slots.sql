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

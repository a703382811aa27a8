-- What identifies a task outside of the catalog: two projects may share a cluster or a database.
CREATE TABLE task_uuids (
    task INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL
);

INSERT INTO task_uuids SELECT task, lower(hex(randomblob(16))) FROM desired;

-- The record that caused a change was topic/partition/offset, and is a tagged JSON object now.
DROP TRIGGER history_is_never_changed;

UPDATE history SET position = json_object(
    'kind', 'kafka',
    'topic', substr(position, 1, instr(position, '/') - 1),
    'partition', CAST(substr(position, instr(position, '/') + 1) AS INTEGER),
    'offset', CAST(substr(
        substr(position, instr(position, '/') + 1), instr(substr(position, instr(position, '/') + 1), '/') + 1
    ) AS INTEGER),
    'topic_id', NULL
) WHERE position IS NOT NULL;

CREATE TRIGGER history_is_never_changed BEFORE UPDATE ON history
BEGIN SELECT RAISE(ABORT, 'the history only grows'); END;

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

-- The storage of materialized views that were dropped, until it is removed from the warehouse.
CREATE TABLE leaving_views (
    uuid  TEXT    PRIMARY KEY,  -- of the view's task
    since INTEGER NOT NULL      -- when it was dropped
);

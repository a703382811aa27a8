"""What can go wrong with materialized views while data flows (RUN-041x)."""

from __future__ import annotations

from headgate.runtime.errors import RunError


class ViewStorageGone(RunError, code="RUN-0411"):
    """The folder in which a materialized view is stored does not exist any more, or is empty."""

    view: str
    folder: str
    MESSAGE = 'the storage of materialized view "{view}" is gone'
    DETAIL = "It was in {folder}."
    HINT = (
        "Put it back from a copy and write ALTER MATERIALIZED VIEW {view} RESUME, or drop the view and create it again."
    )


class NullAsserted(RunError, code="RUN-0412"):
    """A row of a materialized view has NULL in a column of ASSERT NOT NULL."""

    view: str
    column: str
    MESSAGE = 'a row of materialized view "{view}" has NULL in column "{column}", which ASSERT NOT NULL forbids'
    DETAIL = "The view stays as it was before the batch with this row."
    HINT = "Leave such rows out with WHERE {column} IS NOT NULL, or create the view without ASSERT NOT NULL."


class ViewOutgrown(RunError, code="RUN-0414"):
    """What a materialized view has stored is not what its query gives now: a schema below it changed in a way that gives other
    values for old rows."""

    view: str
    MESSAGE = 'the stored rows of materialized view "{view}" are not what its query gives now'
    DETAIL = "The type of a column that it computes with has changed, so that it would have to be filled anew."
    HINT = "Write CREATE OR REPLACE MATERIALIZED VIEW {view} AS and its query: it is then filled anew."


class ChangesTrimmed(RunError, code="RUN-0415"):
    """Changes of a materialized view that were not read yet are no longer stored one by one: the reader is too far behind, or its
    position is not one that the view keeps changes for."""

    view: str
    task: str
    MESSAGE = 'changes of materialized view "{view}" that {task} has not read are no longer stored'
    DETAIL = (
        "The view itself has all rows. Changes are kept for every task that reads the view, also while it is paused, and for "
        "a subscription or a view that is being filled for at least 50 batches."
    )
    HINT = "Begin anew: subscribe again, write CREATE OR REPLACE for a view, or drop a sink and create it again."


class ViewFilledAnew(RunError, code="RUN-0413"):
    """A task has read more batches of a materialized view than the view has: its storage was filled anew or restored."""

    view: str
    task: str
    MESSAGE = 'materialized view "{view}" is behind what {task} has read of it'
    DETAIL = "Its storage was filled anew or restored from an older copy, so continuing would repeat or miss changes."
    HINT = "Drop {task} and create it again: it then reads the view from its start."


class ViewReplaced(RunError, code="RUN-0416"):
    """A materialized view that a client follows was replaced: its rows are now those of another query."""

    view: str
    MESSAGE = 'materialized view "{view}" was replaced'
    DETAIL = "Its rows are those of another query now, so that its changes cannot be followed any further."
    HINT = "Subscribe again."

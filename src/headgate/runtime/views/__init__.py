"""Materialized views: their storage, the task that keeps one equal to its query, and its log as the input of other tasks.

Enters: definitions of `headgate.plan.definitions`. Leaves: tasks, and the rows of views for queries. `store` reads and writes
the storage, `target` is the end of a view's task, `plan` computes its batches, and `log_input` reads its changes.
"""

"""Runs scripts, and keeps the tasks running that the catalog wants.

In: scripts, and schema changes that tasks meet. Out: ``executor`` plans a whole script and runs its plans; ``show`` answers
SHOW, DESCRIBE and EXPLAIN; ``apply`` treats a script as desired state; ``controller`` starts, replaces and stops tasks.
Imports everything up to ``runtime``.
"""

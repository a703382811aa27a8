"""What the catalog wants against what runs.

In: statements, and events of the catalog. Out: ``executor`` plans whole scripts and does them; ``looking`` answers
SHOW, DESCRIBE and EXPLAIN; ``controller`` starts, changes and stops tasks until what runs is what is wanted.
Imports everything up to ``runtime``.
"""

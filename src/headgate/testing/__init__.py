"""Executable specs: the engine behind `headgate test`.

In: files of statements, actions and what must come out of them. Out: an outcome per file, with the place, what was
expected and what was there. ``parse`` reads a file into ``steps``; ``run`` plays them against an engine process and
an embedded world that ``environment`` keeps; ``statements`` runs SQL, ``actions`` holds everything that begins with ``$``,
one file per family; ``codecs`` turns JSON into records and back; ``rows`` and ``comparison`` know what equal means.
Imports everything above in the environment but neither ``control`` nor ``runtime``: a spec sees what a user sees.
"""

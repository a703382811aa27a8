"""Executable specs: the engine behind `headgate test`.

In: files of statements, actions and what must come out of them. Out: an outcome per file, with the line, what was
expected and what was there. ``parse`` reads a file, ``run`` tells what it needs, runs it and reports. ``environment``
keeps the world and the engine process of a job. ``context`` is what the steps of a file share, how a check is tried again,
and what an action is. ``statements`` runs SQL, ``actions`` everything that begins with ``$``. ``records`` and the codecs
beside it turn JSON into records and back; ``notation`` and ``compare`` know how values are written and what equal means.
Imports neither ``control`` nor ``runtime``: a spec sees what a user sees.
"""

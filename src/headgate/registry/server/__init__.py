"""Headgate's own schema registry: Confluent's REST API on SQLite, one process, one folder.

In: HTTP requests. Out: the answers and error codes that Confluent's registry gives. ``store`` keeps the tables;
``reading`` turns stored text into parsed schemas; ``registration``, ``deletion`` and ``settings`` are the rules, as
functions over tables; ``http`` and ``routes`` are the thin layer that speaks REST; ``app`` puts them together.
``python -m headgate.registry.server`` runs it. Imports ``headgate.errors`` and the rest of ``headgate.registry``.
"""

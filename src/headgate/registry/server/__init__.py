"""Headgate's own schema registry: Confluent's REST API on SQLite, one process, one folder.

Enters: HTTP requests. Leaves: the answers and error codes of Confluent's registry, whose clients decide by them.
`routes` lists the paths and calls `rules`; `requests` reads users, paths and bodies; `store` keeps the tables in
SQLite and parses what they hold; `errors` are the refusals. `python -m headgate.registry.server` runs it.

Imports `errors`, `schema` and the rest of `registry`.
"""

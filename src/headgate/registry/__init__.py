"""Schema registries that speak Confluent's REST API.

Enters: schemas as their authors wrote them, subjects, ids. Leaves: `schemas` (a registered schema, and how it is
parsed with its references), `compatibility` (whether one version may follow another, and if not, where), `wire` (the
five bytes before a record), `client` (for any registry with this API) and `server` (Headgate's own registry, on
SQLite). `transport` is the client's HTTP, `json_documents` checks JSON
Schemas.

Imports `errors` and `schema`. Only `transport` and `server` do I/O.
"""

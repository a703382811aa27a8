"""Schema registries, spoken to in Confluent's REST API.

In: schemas as their authors wrote them, subjects, ids. Out: ``schemas`` (a schema and its references as values),
``compatibility`` (may this version follow that one, and if not, where), ``wire`` (the five-byte frame),
``client`` (any registry of that API) and ``server`` (Headgate's own, on SQLite, for the embedded world).
Imports ``errors`` and ``schema``; only ``client`` and ``server`` talk to the outside.
"""

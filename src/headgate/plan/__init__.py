"""Purified statements -> plans. Pure: the same statement and context give the same plan. No I/O, no clock.

In: a resolved and purified statement and its context. Out: one of the plans in ``plans``, for example the changes of the
catalog with what must be done outside before them. ``source``, ``sink``, ``views`` and ``relations`` plan single objects;
``impact`` says what a schema change does to everything downstream; ``definitions`` is what the runtime is given.
Imports everything up to ``resolve``.
"""

"""A whole real world in one folder: Kafka, a schema registry, PostgreSQL and OpenSearch as child processes.

In: a folder. Out: ``world.World``, whose methods give addresses of running services. A *supervisor* process
(``supervisor``) owns the services of a folder; whoever opens the world holds a *lease*, and when the last lease is
gone, by a clean end or a kill -9, the supervisor stops them all and ends. ``kafka``, ``registry``, ``postgres`` and
``opensearch`` each know one service; ``keeper`` starts and stops one; ``process`` and ``lifeline`` see to it that
none outlives its supervisor. ``jars`` and ``java`` find what the services are made of.
Imports ``errors``; the registry is started as a program, not imported.
"""

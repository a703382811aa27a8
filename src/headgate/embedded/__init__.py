"""A whole world in one folder: Kafka, a schema registry, PostgreSQL and OpenSearch as child processes.

In: a folder. Out: ``world.World``, whose methods return the addresses of running services. A *supervisor* process
(``supervisor``) owns the services of a folder. Each user of the world holds a *lease*; when the last lease has ended, also
by kill -9, the supervisor stops all services and exits. ``services`` has the kinds of services, ``service`` starts and
stops one, ``process`` and ``lifeline`` make sure that no process outlives its supervisor. ``folder`` is the world folder on
disk, ``host`` what the machine offers, ``jars`` what the services are made of. ``doctor`` checks all of that.
Imports ``errors`` only, but for ``spark``, which opens sessions of ``runtime``; the registry is started as a program.
"""

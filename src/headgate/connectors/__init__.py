"""Clients of the outside systems that the catalog's connections name: Kafka clusters and schema registries.

In: the options of a connection, with secrets in clear text. Out: ``connections`` (the clients of all connections, opened
once each) and ``kafka`` (describe, check and create topics, read single records, settings for Spark). Errors of the client
libraries become Headgate's errors here. Imports everything up to ``registry``; does network I/O.
"""

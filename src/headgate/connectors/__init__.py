"""The world outside: Kafka clusters and registries behind the catalog's connections.

In: a connection's options with their secrets revealed. Out: each system's client with the few verbs that the rest
needs (check, describe, read, write, provision), and its settings in the words of Spark's reader. Driver errors are
wrapped here. Imports everything up to ``registry``; talks to the outside.
"""

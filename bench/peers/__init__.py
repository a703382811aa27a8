"""Headgate beside other systems that do the same: Flink SQL, and Kafka Connect with Debezium's JDBC sink.

`make bench-peers` runs it. In: the repository, the embedded world, and the peers, which are downloaded once (500 MB) into the
cache folder. Out: tables as `bench` prints them. A file for each peer says how it is set up and started (`flink`, `connect`),
a file for each comparison what both sides do (`topics`, `tables`); `watching` counts what a side has written while it runs,
`rows` checks it afterwards. A side that fails or writes other rows than it should ends the run.
"""

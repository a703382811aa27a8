"""The SQL front end: text in, statements out, and statements printed again.

In: the text of a script (``script.parse_script``) or of one statement (``script.parse_statement``); bytes through
``script.decode_source``. Out: frozen dataclasses, each with its span. One file per family of statements holds its
classes, the functions that read them and how they print themselves (``sql``); ``grammar`` has their synopses; the catalog's store
converts them to JSON. Both forms can be read back exactly. A query body is kept as an exact slice of the text
(``statement.Query``), which ``query`` reads later. Each failure is one class of errors with a span: ``SQL-01xx`` from
the lexer, ``SQL-02xx`` from the parser, ``SQL-04xx`` from the analysis of queries.

The files of this package import ``statement`` as ``s``, ``options`` as ``o`` and ``headgate.schema.types`` as ``t``.

Pure: no I/O. Imports only ``headgate.errors``, ``headgate.text`` and ``headgate.schema``.
"""

"""The SQL front end: text in, statements out, and statements printed again.

In: the text of a script (``script.parse_script``) or of one statement (``script.parse_statement``); bytes through
``script.decode_source``. Out: frozen dataclasses of ``ast``, each with its place in the text; ``render`` prints one
in its normal form and ``json`` stores one, and both can be read back exactly. Query bodies are kept as exact slices
of the text (``ast.names.Query``): the statement parser only finds where they end, ``query`` reads them. An error is one class per
failure, ``SQL-01xx`` from the lexer, ``SQL-02xx`` from the parser, and points at its place.

Pure: no I/O anywhere in this package. Imports only ``headgate.errors`` and ``headgate.schema``.
"""

"""The statement parser: recursive descent, one file per family of statements.

In: a ``cursor.Cursor`` over the tokens of a script. Out: statements of ``headgate.sql.ast``. ``statements`` finds the
function for a statement by its leading keywords; ``options`` reads every parenthesised list of options from a
declared table; ``body`` finds where a query ends without reading it. Each family also carries its SYNOPSIS, which
the docs print and a test checks against the parser. Words are keywords only where the grammar expects them: all but
the few in ``cursor.RESERVED`` are free as names, and those too in quotes.
"""

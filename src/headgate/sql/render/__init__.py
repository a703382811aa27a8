"""Statements printed: one normal form, which the parser reads back as the same statement.

In: statements of ``headgate.sql.ast``. Out: text; keywords in upper case, options as ``NAME = value``, one clause
per line, a semicolon at the end. ``statements.render`` is the door; the other files mirror ``headgate.sql.parser``,
one per family. Query bodies are printed as they were written.
"""

"""Reading text: the lexer and the cursor that statements, types and queries share.

In: a text. Out of ``lexer.tokenize``: its tokens, each with its offsets. ``cursor.Cursor`` steps through them,
remembers what a parser looked for, and makes the error that lists what could stand there. Nothing here knows a
statement or a type.

Pure: no I/O. Imports only ``headgate.errors``.
"""

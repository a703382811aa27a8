"""The shell of `headgate sql`: lines typed by a person in, statements to an engine out.

``shell`` is the loop; ``input`` knows when what was typed is whole, and colours it; ``completion`` knows keywords and
the names of the catalog; ``history`` keeps what was typed, without secrets; ``shortcuts`` are the commands that begin
with a backslash. Imports what ``cli`` imports.
"""

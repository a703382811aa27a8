"""Everything that begins with ``$`` in a spec, one file per family; ``catalogue`` has them all by name.

An action gets its arguments with variables filled in, and the stage. It raises what did not hold; those that look
(`verify`, `columns`, `mapping`) try again until the time-out. Imports as ``testing`` does.
"""

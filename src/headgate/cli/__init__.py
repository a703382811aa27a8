"""The command line. A command parses its arguments, calls into other packages, and prints the result.

In: `headgate <command>`. Out: tables for people, `--output json` for programs, and an exit status per family of errors.
``main`` finds the commands; the short ones are in ``commands``, the others in modules of their names. ``shell`` is the
interactive shell of `headgate sql`, ``engine`` connects to an engine, ``output`` prints. May import every package; no
package imports it.
"""

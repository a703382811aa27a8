"""The command line: thin. A command parses its arguments, calls into the packages above, and renders what comes back.

In: `headgate <command>`. Out: tables for people, `--output json` for programs, and an exit status that tells the
family of an error. May import everything; nothing imports it.
"""

"""Scripts from files and standard input, read before an engine is asked or started for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from headgate.cli.answers import Output, print_diagnostic
from headgate.cli.errors import ScriptUnreadable
from headgate.cli.main import exit_status
from headgate.errors import HeadgateError
from headgate.sql.redact import redacted_text
from headgate.sql.script import decode_source, parse_script


def read_script(file: Path) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        source = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as wrong:
        raise ScriptUnreadable(str(file), (wrong.strerror or type(wrong).__name__).lower()) from wrong
    return decode_source(source)


def check_script(text: str, output: Output) -> int:
    """How many statements the script has. One that cannot be read is told and ends the command, engine or not."""
    try:
        return len(parse_script(text))
    except HeadgateError as error:
        end_with(error, text, output)


def end_with(error: HeadgateError, text: str, output: Output) -> NoReturn:
    print_diagnostic(error.diagnostic(redacted_text(text)), output)
    sys.exit(exit_status(error))

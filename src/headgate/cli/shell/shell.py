"""The loop of the shell: read, send, print, and go on whatever happened."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import click
from prompt_toolkit import PromptSession

from headgate.cli.answers import print_answer, print_diagnostic
from headgate.cli.shell.completion import SqlCompleter, read_names
from headgate.cli.shell.history import RedactedHistory
from headgate.cli.shell.input import SqlLexer, key_bindings
from headgate.cli.shell.shortcuts import Leave, Say, Send, shortcut
from headgate.errors import HeadgateError
from headgate.serve.client import EngineClient

PROMPT = "headgate> "
MORE = "     ...> "


class Shell:
    def __init__(self, client: EngineClient, history: Path) -> None:
        self._client = client
        self._completer = SqlCompleter()
        self._changed = False
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=MORE,
            history=RedactedHistory(str(history)),
            completer=self._completer,
            complete_while_typing=False,
            lexer=SqlLexer(),
            key_bindings=key_bindings(),
            enable_open_in_editor=True,
        )

    def run(self) -> bool:
        """Until the person leaves. Whether something was made or changed meanwhile."""
        click.echo(f"connected to {self._client.url}; \\? for help, \\q to leave")
        self._refresh_names()
        while True:
            try:
                if not self._take(self._session.prompt()):
                    return self._changed
            except KeyboardInterrupt:
                continue
            except EOFError:
                return self._changed

    def _take(self, text: str) -> bool:
        """False to leave."""
        match shortcut(text):
            case Leave():
                return False
            case Say(told):
                click.echo(told)
            case Send(sql):
                self._send(sql)
            case None:
                if text.strip().strip(";").strip():
                    self._send(text)
        return True

    def _send(self, sql: str) -> None:
        try:
            with closing(self._client.run(sql)) as events:
                answered = print_answer(events, "table")
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
            return
        except HeadgateError as error:
            print_diagnostic(error.diagnostic())
            return
        if answered.changed:
            self._changed = True
            self._refresh_names()

    def _refresh_names(self) -> None:
        """In the background: completion is for people, and may be a moment late."""
        threading.Thread(target=self._read_names, daemon=True).start()

    def _read_names(self) -> None:
        try:
            self._completer.names = read_names(self._client)
        except HeadgateError:
            return  # whatever is wrong is told when the next statement is sent

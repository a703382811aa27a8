"""What an action is: its name, what it takes, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.errors import similar_names
from headgate.testing.context import SpecContext
from headgate.testing.errors import InvalidAction, UnknownActionOption
from headgate.testing.notation import Json, read_json
from headgate.testing.parse import ActionCall, Block

Body: TypeAlias = Literal["none", "optional", "required"]

_TRUE = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call with its arguments filled in. ``body`` still holds its variables; ``context.fill`` gives its lines."""

    action: str
    arguments: tuple[str, ...]  # all of them in their order, as they were written
    positional: tuple[str, ...]
    options: Mapping[str, str]
    body: Block

    def text(self, name: str) -> str:
        return self.options[name]

    def optional(self, name: str) -> str | None:
        return self.options.get(name)

    def flag(self, name: str) -> bool:
        written = self.options.get(name, "false")
        if written not in _TRUE:
            raise self.wrong(f'takes true or false for "{name}", not "{written}"')
        return _TRUE[written]

    def number(self, name: str) -> int | None:
        written = self.options.get(name)
        if written is None:
            return None
        try:
            return int(written)
        except ValueError:
            raise self.wrong(f'takes a number for "{name}", not "{written}"') from None

    def json(self, name: str) -> Json:
        written = self.options.get(name)
        return None if written is None else read_json(written)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """The options that begin with a prefix, such as `config.`, by the rest of their names."""
        return {key.removeprefix(prefix): value for key, value in self.options.items() if key.startswith(prefix)}

    def wrong(self, problem: str) -> InvalidAction:
        return InvalidAction(self.action, problem)


@dataclass(frozen=True, slots=True)
class Action:
    """What an action takes and does.

    ``options`` that end in a dot are prefixes; None takes any name. ``positional`` is how many arguments without a name
    there are, None for any number. An action that stops or starts Headgate or a service ``disrupts``."""

    name: str
    run: Callable[[Invocation, SpecContext], None]
    required: tuple[str, ...] = ()
    options: tuple[str, ...] | None = ()
    positional: int | None = 0
    body: Body = "none"
    disrupts: bool = False

    def check(self, call: ActionCall) -> None:
        """Raises what is wrong with a call, whatever its variables will be."""
        named = [argument.name for argument in call.arguments if argument.name is not None]
        if self.options is not None:
            for name in named:
                self._check_option(name)
        for name in self.required:
            if name not in named:
                raise InvalidAction(self.name, f'lacks its option "{name}"')
        count = sum(argument.name is None for argument in call.arguments)
        if self.positional is not None and count != self.positional:
            raise InvalidAction(self.name, f"takes {_arguments(self.positional)} without a name, not {count}")
        if self.body == "required" and not call.body.lines:
            raise InvalidAction(self.name, "lacks its body, the lines right below it")
        if self.body == "none" and call.body.lines:
            raise InvalidAction(self.name, "takes no body, and has lines right below it")

    def perform(self, call: ActionCall, context: SpecContext) -> None:
        fill = context.variables.fill
        positional = tuple(fill(argument.value) for argument in call.arguments if argument.name is None)
        options = {argument.name: fill(argument.value) for argument in call.arguments if argument.name is not None}
        arguments = tuple(fill(argument.raw) for argument in call.arguments)
        self.run(Invocation(self.name, arguments, positional, options, call.body), context)

    def _check_option(self, name: str) -> None:
        known = (*self.required, *(self.options or ()))
        prefixed = any(one.endswith(".") and name.startswith(one) for one in known)
        if name not in known and not prefixed:
            raise UnknownActionOption(self.name, name, similar_names(name, known))


def _arguments(count: int) -> str:
    return "no argument" if count == 0 else "one argument" if count == 1 else f"{count} arguments"

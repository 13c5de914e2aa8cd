"""Typer commands that convert plain values themselves.

Typer builds a pydantic adapter for each parameter of the command that runs, which costs more than reading a small
trace: 80 ms of 450 ms, measured with typer 0.29. Text, whole numbers and choices need none of it.
"""

import difflib
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from traceaudit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Command", "Group", "usage_error"]

NEAR = 0.75
"""How alike a word and its correction are at least; Typer's 0.6 takes --no-such for --machine."""


class Command(TyperCommand):
    """A command with light conversion where its parameters allow it, Typer's own elsewhere."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401, D102  (Typer's own types are private)
        return _lightened(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Refuse words that are empty before the command runs: as a path, one would mean the current folder."""
        for param in self.get_params(ctx):
            value = ctx.params.get(param.name)
            if value == "" or (isinstance(value, list) and "" in value):
                flag = max(param.opts, key=len)
                name = flag if flag.startswith("-") else "PATH"
                raise UsageError(f"{name} is empty", hint="a shell variable that is not set gives an empty word")
        return super().invoke(ctx)


class Group(TyperGroup):
    """The group above the commands, its own options converted lightly as well."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401, D102
        return _lightened(super().get_params(ctx))


def usage_error(exc: Exception, word: str | None, commands: Sequence[str]) -> UsageError | None:
    """Turn a complaint of Typer about the command line into one of ours, None if it is something else.

    `word` is the first of the command line that is no option. Complaints are told by what they can do and not by
    their types, which Typer took from click and in later versions brings itself.
    """
    told = getattr(exc, "format_message", None)
    if told is None or type(exc).__name__ == "NoArgsIsHelpError":
        return None
    ctx = getattr(exc, "ctx", None)
    name = getattr(exc, "option_name", None)
    command = word if word in commands else None
    if type(exc).__name__ == "NoSuchOption":
        known = [one for param in ctx.command.get_params(ctx) for one in param.opts] if ctx is not None else []
        return UsageError(f"no such option: {name}", hint=_near(str(name), known) or _help(command))
    if word is not None and command is None and type(exc).__name__ == "UsageError":
        hint = _near(word, commands) or f"take one of {', '.join(commands)}"
        return UsageError(f"no such command: {word!r}", hint=hint)
    if type(exc).__name__ == "BadParameter" and getattr(exc, "param", None) is not None:
        message, _, hint = str(getattr(exc, "message", "")).partition("\n")
        flag = max(exc.param.opts, key=len)  # type: ignore[attr-defined]
        return UsageError(f"{flag}: {_lower(message)}", hint=hint or _help(command))
    return UsageError(_lower(str(told())), hint=_help(command))


def _near(word: str, known: Sequence[str]) -> str | None:
    near = difflib.get_close_matches(word.replace("_", "-"), known, n=1, cutoff=NEAR)
    return f"did you mean {near[0]}?" if near else None


def _help(command: str | None) -> str:
    return f"traceaudit {command} --help shows the usage" if command else "traceaudit --help lists the commands"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")


def _lightened(params: Any) -> Any:  # noqa: ANN401
    for param in params:
        convert = _converter(getattr(getattr(param, "type_descriptor", None), "annotation", None))
        # Typer fills this slot at the first use; a version without it converts as it always did.
        if convert is not None and getattr(param, "_runtime_param", params) is None:
            param._runtime_param = _Light(convert)  # noqa: SLF001  (no public name for it)
    return params


class _Light:
    """Stands where Typer keeps its adapter."""

    def __init__(self, convert: "Callable[[Any], object]") -> None:
        self._convert = convert

    def coerce(self, value: Any, param: Any, ctx: Any) -> object:  # noqa: ANN401  (Typer's own types are private)
        """Convert the text of the command line; defaults and what is missing stay as they are."""
        if value is None:
            return None
        try:
            return self._convert(value)
        except ValueError as exc:
            raise typer.BadParameter(str(exc), ctx=ctx, param=param) from exc


def _converter(annotation: object) -> "Callable[[Any], object] | None":
    if annotation is str:
        return str
    if annotation is int:
        return _whole_number
    if annotation is bool:
        return bool
    if annotation == list[str]:
        return _texts
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return lambda value: _choice(annotation, value)
    return None


def _texts(values: Any) -> list[str]:  # noqa: ANN401  (whatever the parser collected)
    return [str(value) for value in values]


def _whole_number(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a whole number.") from None


def _choice(choices: type[Enum], value: object) -> Enum:
    try:
        return choices(value)
    except ValueError:
        known = ", ".join(str(choice.value) for choice in choices)
        raise ValueError(f"{value!r} is no choice\ntake one of {known}") from None

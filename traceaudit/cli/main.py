"""The entry point: finds the command, and is the one place where errors become messages and exit codes."""

import errno
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from traceaudit import __version__
from traceaudit.cli.command import Command, Group, usage_error
from traceaudit.errors import ExitCode, TraceAuditError, UsageError

__all__ = ["COMMANDS", "application", "main"]

COMMANDS = ("reconcile", "kernels", "gaps", "whatif", "diff", "check", "inspect", "roofline", "serverlog", "calibrate")
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of writing alone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Whatever a user can cause ends in one line on stderr, a hint and an exit code; anything else is a bug of ours and
    says so. Tracebacks are shown with ``--debug`` only.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        code = typer.main.get_command(application(args))(args=args, prog_name="traceaudit", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except KeyboardInterrupt:
        return 130
    except TraceAuditError as exc:
        _complain(exc, debug="--debug" in args)
        return int(exc.exit_code)
    except Exception as exc:  # noqa: BLE001  (the boundary: no traceback reaches a user)
        return _other(exc, args)
    return code if isinstance(code, int) else int(ExitCode.OK)


def application(args: Sequence[str] = ()) -> typer.Typer:
    """Build the command line with the command that `args` name, or with all of them if they name none."""
    app = typer.Typer(
        name="traceaudit",
        cls=Group,
        help="Audit PyTorch profiler traces of LLM decode steps: can they be believed, and where did the step go?",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    first = _first_word(args)
    for name in (first,) if first in COMMANDS else COMMANDS:
        module = import_module(f"traceaudit.cli.{name}")
        app.command(name=name, cls=Command)(getattr(module, name))
    return app


def _show_version(wanted: bool) -> None:  # noqa: FBT001  (Typer calls it with the flag's value)
    if wanted:
        sys.stdout.write(f"traceaudit {__version__}\n")
        raise typer.Exit


def _global_options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Keep the sub-commands below a group, and hold the options of the group."""


def _other(exc: Exception, args: Sequence[str]) -> int:
    """Tell Typer's own complaints, a standard output that takes nothing more, and bugs apart."""
    error: TraceAuditError | None = usage_error(exc, _first_word(args), COMMANDS)
    if error is None and isinstance(exc, OSError) and exc.filename is None and exc.errno in NO_ROOM:
        from traceaudit.cli.output import silence_stdout

        silence_stdout()
        error = TraceAuditError(f"cannot write to standard output: {exc.strerror}", hint="see where it goes")
    if error is not None:
        _complain(error, debug="--debug" in args)
        return int(error.exit_code)
    if type(exc).__name__ == "NoArgsIsHelpError":  # by its name: some versions of Typer bring their own
        sys.stderr.write(f"{exc}\n")
        return int(ExitCode.USAGE)
    _confess(exc, debug="--debug" in args)
    return int(ExitCode.INTERNAL)


def _first_word(args: Sequence[str]) -> str | None:
    return next((arg for arg in args if not arg.startswith("-")), None)


def _fallback_hint(exc: TraceAuditError) -> str | None:
    if isinstance(exc.__cause__, OSError):
        return "check the path and its permissions"
    return "the command with --help lists its options" if isinstance(exc, UsageError) else None


def _complain(exc: TraceAuditError, *, debug: bool) -> None:
    lines = [f"traceaudit: {exc}"]
    if hint := exc.hint or _fallback_hint(exc):
        lines.append(f"hint: {hint}")
    _to_stderr(lines, debug=debug)


def _confess(exc: Exception, *, debug: bool) -> None:
    advice = "" if debug else " with the output of --debug"
    _to_stderr([f"traceaudit: internal error, please report it{advice}: {type(exc).__name__}: {exc}"], debug=debug)


def _to_stderr(lines: list[str], *, debug: bool) -> None:
    from traceaudit.cli.output import write_stderr

    if debug:
        import traceback

        lines = [*traceback.format_exc().rstrip().split("\n"), *lines]
    write_stderr(lines)

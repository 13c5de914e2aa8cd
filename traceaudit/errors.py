"""The exceptions of the package and the exit codes they lead to.

Every error that a user can cause derives from `TraceAuditError` and carries what is wrong, where, and a hint.
The command line turns it into one line on stderr and its exit code; library users catch it.
"""

from enum import IntEnum

__all__ = [
    "AnalysisError",
    "ConfigError",
    "ExitCode",
    "InvariantError",
    "MissingDataError",
    "TraceAuditError",
    "TraceError",
    "TraceFormatError",
    "TraceNotFoundError",
    "TraceSchemaError",
    "UnknownHardwareError",
    "UsageError",
]


class ExitCode(IntEnum):
    """Exit statuses of every command."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 70


class TraceAuditError(Exception):
    """Something the user gave cannot be used.

    Parameters
    ----------
    message
        What is wrong, lower case, no final period, user values quoted with `repr`.
    where
        The file, and the place in it, if there is one.
    hint
        What to do about it.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """Return ``what is wrong — where``.

        Examples
        --------
        >>> str(TraceAuditError("no such file", where="a.json"))
        'no such file — a.json'
        """
        return f"{self.message} — {self.where}" if self.where else self.message


class UsageError(TraceAuditError, ValueError):
    """Options contradict each other, or one has a value that means nothing."""


class ConfigError(TraceAuditError, ValueError):
    """A configuration file has a bad key or value."""


class TraceError(TraceAuditError):
    """A trace cannot be used."""


class TraceNotFoundError(TraceError, FileNotFoundError):
    """No trace lies at the path."""


class TraceFormatError(TraceError, ValueError):
    """The input is no profiler trace, or is damaged beyond repair."""


class TraceSchemaError(TraceError, ValueError):
    """A field that the analysis needs is missing or of the wrong type."""


class AnalysisError(TraceAuditError):
    """An analysis cannot give an answer."""


class MissingDataError(AnalysisError):
    """The trace lacks what this analysis needs."""

    exit_code = ExitCode.INCONCLUSIVE


class UnknownHardwareError(AnalysisError):
    """No peaks are known for the device."""

    exit_code = ExitCode.INCONCLUSIVE


class InvariantError(TraceAuditError):
    """A conservation law does not hold: a bug of traceaudit itself."""

    exit_code = ExitCode.INTERNAL

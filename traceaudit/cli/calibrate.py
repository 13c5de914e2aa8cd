"""``traceaudit calibrate``: what this machine's GPU really reaches."""

from enum import StrEnum
from typing import Annotated

import typer

from traceaudit.cli import options as opt

__all__ = ["calibrate"]

MOST_REPEATS = 10_000

DeviceNumber = Annotated[int, typer.Option("--device", metavar="N", help="Ordinal of the device.")]
Repeats = Annotated[int, typer.Option("--repeats", metavar="N", help="Times that each measurement is repeated.")]
Save = Annotated[
    str | None,
    typer.Option(
        "--save", metavar="FILE", show_default=False, help="Write the machine file that kernels --machine reads."
    ),
]


class _Format(StrEnum):
    """How a calibration is written."""

    TABLE = "table"
    JSON = "json"


FormatOption = Annotated[
    _Format | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        show_default=False,
        help="table or json; by default what the ending of FILE says, table for .txt, .log or none.",
    ),
]


def calibrate(
    *,
    device: DeviceNumber = 0,
    repeats: Repeats = 15,
    save: Save = None,
    format_: FormatOption = None,
    output: opt.OutputFile = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Measure read, copy and triad bandwidth and matrix rates of a GPU; needs torch."""
    from traceaudit.cli.inputs import refuse_same_output
    from traceaudit.cli.output import Output, deliver, refuse_unwritable, write_file
    from traceaudit.errors import UsageError
    from traceaudit.interop.calibrate import calibrate as measure
    from traceaudit.report.calibration import machine_toml

    if device < 0:
        raise UsageError(f"--device must be 0 or more, found {device}", hint="they count from 0")
    if not 1 <= repeats <= MOST_REPEATS:
        bound = "at least 1" if repeats < 1 else f"at most {MOST_REPEATS}"
        raise UsageError(f"--repeats must be {bound}, found {repeats}", hint="15 take a few seconds")
    out = Output.of("calibrate", format_, output, strict=False, quiet=quiet)
    refuse_unwritable(save, "--save")
    refuse_unwritable(output, "--output")
    refuse_same_output(output, save)
    result = measure(device, repeats=repeats)
    if save is not None:
        write_file(save, machine_toml(result))
    deliver(lambda _: result, out)

"""``traceaudit check``: the gate of a pull request."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceaudit.cli import comparison_options as copt
from traceaudit.cli import options as opt

if TYPE_CHECKING:
    from traceaudit.audit.comparison import SideTraces
    from traceaudit.cli.progress import Report
    from traceaudit.model.budget import Budget
    from traceaudit.model.options import ReconcileOptions
    from traceaudit.model.results.diff import CheckResult

__all__ = ["check"]

DEFAULT_BUDGET = "traceaudit.toml"

CheckPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[BASE] HEAD",
        show_default=False,
        help="The two sides, each a trace, a folder of repeated runs or a quoted glob, or BASE... vs HEAD...; "
        "HEAD alone with --baseline.",
    ),
]
BudgetFile = Annotated[
    str | None,
    typer.Option("--budget", metavar="FILE", show_default=False, help="Judge by the limits in this TOML file."),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="NAME",
        show_default=False,
        help="Stored baseline, by name or path: the base if no BASE is given, else what BASE itself is held against.",
    ),
]
SaveBaseline = Annotated[
    str | None,
    typer.Option(
        "--save-baseline",
        metavar="NAME",
        show_default=False,
        help="Store HEAD as a baseline, unless the check does not pass.",
    ),
]
Init = Annotated[bool, typer.Option("--init", help="Write a budget with what HEAD (or --baseline) measures, and stop.")]
Force = Annotated[bool, typer.Option("--force", help="Let --init replace a budget that is there.")]


def check(
    paths: CheckPaths = None,
    *,
    budget: BudgetFile = None,
    baseline: Baseline = None,
    save_baseline: SaveBaseline = None,
    init: Init = False,
    force: Force = False,
    relative: copt.Relative = None,
    absolute_us: copt.AbsoluteUs = None,
    allow: copt.Allow = None,
    step_annotation: opt.StepAnnotation = None,
    steps: opt.Steps = None,
    rank: opt.Rank = None,
    device: opt.Device = None,
    format_: copt.FormatOption = None,
    output: opt.OutputFile = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Did this change make it worse? Exit code 0: it did not, 1: it did, 3: the data cannot tell."""
    from traceaudit.audit.comparison import compare, load_baseline, read_side
    from traceaudit.config import SelectionFlags, StepFlags, reconcile_options
    from traceaudit.errors import ExitCode
    from traceaudit.model.results.diff import Outcome

    options = reconcile_options(steps=StepFlags(step_annotation, steps), selection=SelectionFlags(rank, device))
    base, head = _sides(paths, baseline, alone=init or save_baseline is not None)
    _protect(base, head, budget, baseline, save_baseline=save_baseline, init=init, output=output)
    if init:
        _write_budget(budget or DEFAULT_BUDGET, _one_side(head, baseline, options), force=force, quiet=quiet)
        return
    if not base and baseline is None:
        assert save_baseline is not None  # noqa: S101  (_sides saw to it)
        _save(save_baseline, read_side("head", head, options), quiet=quiet)
        return
    limits = _budget(budget, relative, absolute_us, allow)
    sides: list[SideTraces] = []

    def analyse(progress: "Report | None") -> "CheckResult":
        record = None if baseline is None else load_baseline(baseline)
        measured = read_side("base", base, options, progress=progress) if base else record
        assert measured is not None  # noqa: S101  (without BASE there is a baseline)
        sides.append(read_side("head", head, options, progress=progress))
        return compare(measured, sides[0], limits, record=record if base else None)

    result = copt.deliver_comparison("check", analyse, format_, output, quiet=quiet)
    codes = {Outcome.PASS: ExitCode.OK, Outcome.FAIL: ExitCode.GATE_FAILED, Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE}
    if save_baseline is not None:
        if result.verdict is Outcome.PASS:
            _save(save_baseline, sides[0], quiet=quiet)
        else:
            _say(f"the baseline {save_baseline!r} was not stored: the check did not pass", quiet=quiet)
    if result.verdict is not Outcome.PASS:
        raise typer.Exit(int(codes[result.verdict]))


def _sides(paths: list[str] | None, baseline: str | None, *, alone: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from traceaudit.audit.comparison import sides_of
    from traceaudit.errors import UsageError

    if not paths:
        if alone and baseline is not None:
            return (), ()
        raise UsageError("check needs traces", hint="write traceaudit check BASE HEAD, or check HEAD --baseline NAME")
    base, head = sides_of(paths)
    if not base and baseline is None and not alone:
        raise UsageError(
            "check needs two sides", hint="write traceaudit check BASE HEAD, or check HEAD --baseline NAME"
        )
    return base, head


def _protect(
    base: tuple[str, ...],
    head: tuple[str, ...],
    budget: str | None,
    baseline: str | None,
    *,
    save_baseline: str | None,
    init: bool,
    output: str | None,
) -> None:
    """Refuse to overwrite what is read; only a baseline may take the place of the one before it."""
    from traceaudit.audit.comparison import baseline_path
    from traceaudit.cli.inputs import Inputs, refuse_same_output

    traces = (*base, *head)
    record = None if baseline is None else baseline_path(baseline)
    if init:
        Inputs(traces=traces, files=(record,)).refuse(budget or DEFAULT_BUDGET, "--budget")
        return
    Inputs(traces=traces, files=(budget, record)).refuse(output)
    if save_baseline is not None:
        stored = baseline_path(save_baseline)
        Inputs(traces=traces, files=(budget,)).refuse(stored, "--save-baseline")
        refuse_same_output(output, stored)


def _one_side(head: tuple[str, ...], baseline: str | None, options: "ReconcileOptions") -> "SideTraces":
    from traceaudit.audit.comparison import load_baseline, read_side

    if head or baseline is None:
        return read_side("head", head, options)
    return load_baseline(baseline)


def _budget(path: str | None, relative: float | None, absolute_us: float | None, allow: list[str] | None) -> "Budget":
    """Read the budget; flags replace its general limits."""
    from traceaudit.audit.comparison import allowed
    from traceaudit.errors import UsageError
    from traceaudit.model.budget import Budget
    from traceaudit.units import NS_PER_US

    budget = Budget() if path is None else _read(path)
    for flag, value in (("--relative", relative), ("--absolute-us", absolute_us)):
        if value is not None and not 0 <= value <= 1e12:  # noqa: PLR2004  (also refuses nan)
            raise UsageError(f"{flag} must be a number of 0 or more, found {value!r}", hint="for example 0.02 or 5")
    limits = budget.limits
    if relative is not None:
        limits = replace(limits, relative=relative)
    if absolute_us is not None:
        limits = replace(limits, absolute_ns=absolute_us * NS_PER_US)
    return replace(budget, limits=limits, allow=budget.allow | allowed(allow or ()))


def _read(path: str) -> "Budget":
    from traceaudit.ingest.budgetfile import read_budget

    return read_budget(path)


def _write_budget(path: str, side: "SideTraces", *, force: bool, quiet: bool) -> None:
    from traceaudit.analyses.diff import diff
    from traceaudit.cli.output import write_file
    from traceaudit.errors import UsageError
    from traceaudit.model.budget import propose
    from traceaudit.report.budget_toml import budget_toml

    if Path(path).exists() and not force:
        raise UsageError("there is a budget already", where=path, hint="--force replaces it, --budget names another")
    write_file(path, budget_toml(propose(diff(side.side, side.side))))
    _say(f"wrote {path}", quiet=quiet)


def _save(name: str, side: "SideTraces", *, quiet: bool) -> None:
    from traceaudit.audit.comparison import save_baseline
    from traceaudit.cli.output import write_file

    path, text = save_baseline(side.side, name)
    write_file(path, text)
    _say(f"stored the baseline {name!r} in {path}", quiet=quiet)


def _say(text: str, *, quiet: bool) -> None:
    from traceaudit.cli.output import write_stderr

    if not quiet:
        write_stderr([f"traceaudit: {text}"])

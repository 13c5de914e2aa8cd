"""A pytest fixture that records a step on the GPU and holds it against a baseline or a budget.

Loaded by pytest through the entry point ``traceaudit``; heavy modules are imported when the fixture is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from traceaudit.audit.comparison import SideTraces
    from traceaudit.model.results.diff import CheckResult

__all__ = ["StepCheck", "pytest_addoption", "traceaudit_check"]

SAVE = "--traceaudit-save-baselines"
INCONCLUSIVE = "traceaudit_inconclusive"
CHOICES = ("skip", "fail")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin to pytest."""
    group = parser.getgroup("traceaudit")
    group.addoption(
        SAVE, action="store_true", default=False, help="store what traceaudit_check records as the baselines it names"
    )
    parser.addini(INCONCLUSIVE, "what a check that the data cannot decide does: skip (default) or fail", default="skip")


@pytest.fixture
def traceaudit_check(request: pytest.FixtureRequest, tmp_path: Path) -> "StepCheck":
    """Return a function that records a step and fails the test if it is slower than it may be.

    The test is skipped where torch or a GPU is absent.
    """
    on_inconclusive = str(request.config.getini(INCONCLUSIVE))
    if on_inconclusive not in CHOICES:
        raise pytest.UsageError(f"{INCONCLUSIVE} must be one of {', '.join(CHOICES)}, found {on_inconclusive!r}")
    _need_gpu()
    return StepCheck(tmp_path, request.node.name, bool(request.config.getoption(SAVE)), on_inconclusive == "fail")


@dataclass(frozen=True, slots=True)
class StepCheck:
    """Records a step and judges it.

    Attributes
    ----------
    folder
        Where traces go.
    test
        Name of the test.
    save
        Store baselines instead of comparing with them.
    fail_inconclusive
        Fail, not skip, the test when the data cannot decide.
    """

    folder: Path
    test: str
    save: bool
    fail_inconclusive: bool

    def __call__(
        self,
        step: Callable[[], object],
        *,
        baseline: str | None = None,
        budget: str | None = None,
        steps: int = 20,
        warmup_steps: int = 5,
        batch: int | None = None,
        context: int | None = None,
    ) -> "CheckResult":
        """Record the step and hold it against a baseline, a budget, or both.

        Parameters
        ----------
        step
            Runs one step; it need not wait for the device.
        baseline
            Name or path of a stored baseline, the base of the comparison. Without one, only the bounds of the budget
            are looked at.
        budget
            Path of a TOML budget; the default limits without one.
        steps, warmup_steps
            Steps recorded, and run before.
        batch, context
            Kept with the recording; runs that differ in them are not compared.

        Returns
        -------
        CheckResult
            The judgement, when the test goes on.
        """
        from traceaudit.audit.comparison import SideTraces, compare, load_baseline
        from traceaudit.ingest.budgetfile import read_budget
        from traceaudit.model.budget import Budget

        if baseline is None and budget is None:
            raise ValueError("give a baseline, a budget, or both")
        limits = Budget() if budget is None else read_budget(budget)
        head = self._record(step, steps, warmup_steps, batch, context)
        base = SideTraces(head.side)
        if baseline is not None and self.save:
            _store(baseline, head)
        elif baseline is not None:
            base = load_baseline(baseline)
        result = compare(base, head, limits)
        self._conclude(result)
        return result

    def _record(
        self, step: Callable[[], object], steps: int, warmup_steps: int, batch: int | None, context: int | None
    ) -> "SideTraces":
        from traceaudit.audit.comparison import read_side
        from traceaudit.capture import record
        from traceaudit.model.options import ReconcileOptions

        path = self.folder / "step.json.gz"
        record(
            step,
            path=path,
            warmup_steps=warmup_steps,
            wall_steps=steps,
            wall_repeats=3,
            profile_steps=steps,
            batch=batch,
            context=context,
        )
        return read_side(self.test, [str(path)], ReconcileOptions())

    def _conclude(self, result: "CheckResult") -> None:
        from traceaudit.model.results.diff import Outcome
        from traceaudit.report import render

        if result.verdict is Outcome.PASS:
            return
        text = render("check", "table", result)
        if result.verdict is Outcome.FAIL or self.fail_inconclusive:
            pytest.fail(text, pytrace=False)
        pytest.skip(f"traceaudit: the data cannot decide\n{text}")


def _need_gpu() -> None:
    """Skip the test where nothing can be recorded, and say why."""
    try:
        import torch
    except ModuleNotFoundError:
        pytest.skip("traceaudit: torch is not installed: pip install torch")
    if not torch.cuda.is_available():
        pytest.skip("traceaudit: no GPU that torch can use")


def _store(name: str, side: "SideTraces") -> None:
    from traceaudit.audit.comparison import save_baseline
    from traceaudit.cli.output import write_file

    path, text = save_baseline(side.side, name)
    write_file(path, text)

"""`diff` and `check` as JUnit XML: one case for each kernel, group, judged measure and rule of a budget."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from traceaudit.model.results.diff import Outcome
from traceaudit.report.comparison_words import share_text, signed
from traceaudit.report.format import duration, plain
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.noise import Effect
    from traceaudit.model.results.diff import CheckResult

__all__ = ["check", "diff"]

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-�\U00010000-\U0010ffff]")


def diff(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a comparison."""
    return _suite("diff", result)


def check(result: "CheckResult", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write a judgement; an open question is an error, a broken limit a failure."""
    return _suite("check", result)


def _suite(command: str, result: "CheckResult") -> str:
    cases = list(_cases(result))
    failures = sum(outcome is Outcome.FAIL for _, _, outcome, _ in cases)
    errors = sum(outcome is Outcome.INCONCLUSIVE for _, _, outcome, _ in cases)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="traceaudit {command}" tests="{len(cases)}" failures="{failures}" errors="{errors}">',
        f' <testsuite name="traceaudit {command}" tests="{len(cases)}" failures="{failures}" errors="{errors}">',
    ]
    for group, name, outcome, message in cases:
        head = f"  <testcase classname={_attribute(f'traceaudit.{group}')} name={_attribute(name)}"
        if outcome is Outcome.PASS:
            lines.append(f"{head}/>")
            continue
        tag = "failure" if outcome is Outcome.FAIL else "error"
        lines += [
            f"{head}>",
            f"   <{tag} message={_attribute(message)}>{escape(_text(message))}</{tag}>",
            "  </testcase>",
        ]
    return "\n".join([*lines, " </testsuite>", "</testsuites>"]) + "\n"


def _cases(result: "CheckResult") -> Iterator[tuple[str, str, Outcome, str]]:
    """Yield group, name, outcome and message; the verdict itself is the first case."""
    yield (
        "verdict",
        "verdict",
        result.verdict,
        "; ".join(ruling.message for ruling in result.rulings if ruling.outcome is not Outcome.PASS),
    )
    comparison = result.diff
    for kernel in comparison.kernels:
        if kernel.group is None:
            name = kernel.name + comparison.size_mark(kernel)
            yield "kernel", name, _outcome(kernel.violates, kernel.suspects), _message(kernel.effect)
    for group in comparison.groups:
        name = f"{group.kind}: {' + '.join(group.base)} -> {' + '.join(group.head)}"
        yield "group", name, _outcome(group.violates, group.suspects), _message(group.effect)
    for measure in (comparison.step, *comparison.measures):
        if measure.judged or measure.violates or measure.suspects:
            yield "step", measure.name, _outcome(measure.violates, measure.suspects), _message(measure.effect)
    for ruling in result.rulings:
        if ruling.line is not None:
            yield "budget", ruling.rule, ruling.outcome, ruling.message


def _outcome(violates: tuple[str, ...], suspects: tuple[str, ...]) -> Outcome:
    return Outcome.FAIL if violates else Outcome.INCONCLUSIVE if suspects else Outcome.PASS


def _message(effect: "Effect") -> str:
    share = share_text(effect)
    return f"{signed(effect.delta_ns)}{f' ({share})' if share else ''} a step, noise {duration(effect.noise_ns)}"


def _attribute(text: str) -> str:
    return quoteattr(_text(text))


def _text(text: str) -> str:
    """Return text that XML 1.0 can hold, with nothing in it that a terminal would obey."""
    return _FORBIDDEN.sub("?", plain(text))

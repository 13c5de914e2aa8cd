"""A budget as the TOML file that `check --budget` reads."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceaudit.model.budget import Budget, Limits

__all__ = ["budget_toml"]

_TABLES = {"op_time": "total", "busy": "busy", "window": "window", "wall": "wall"}


def budget_toml(budget: "Budget") -> str:
    """Write a budget, with a word on each part."""
    lines = [
        "# What a change may cost, and what a step may cost at all. Read by: traceaudit check --budget FILE",
        "",
        "# Growth that is allowed to every kernel and to the step. What exceeds all of these, and its noise, fails.",
        "[limits]",
        *_limits(budget.limits),
        "",
        "[gate]",
        f"confidence = {budget.confidence!r}  # that identical code does not fail",
        f"hidden = {budget.hidden_frac!r}  # a pass excludes that a kernel lost more than this share of its time ...",
        f"hidden_step_share = {budget.hidden_step_frac!r}  # ... and more than this share of the step's op time",
        f"min_runs = {budget.min_runs}  # runs a side; three measure what runs of the same code differ by",
        f"completeness = {_text(str(budget.require))}  # traces worse than this decide nothing",
        f"allow = [{', '.join(map(_text, sorted(budget.allow)))}]  # facts that may differ between the sides",
    ]
    for kernel in budget.kernels:
        lines += ["", "[[kernel]]", f"match = {_pattern(kernel.match.pattern)}"]
        lines += [] if kernel.limits is None else _limits(kernel.limits)
        lines += [] if kernel.max_ns is None else [f"max_us = {_us(kernel.max_ns)}"]
        lines += [] if kernel.max_launches is None else [f"max_launches = {kernel.max_launches}"]
        lines += ["ignore = true"] if kernel.ignore else []
    for measure in budget.measures:
        lines += ["", f"[{_TABLES.get(measure.measure, f'account.{measure.measure}')}]"]
        lines += [] if measure.limits is None else _limits(measure.limits)
        lines += [] if measure.max_ns is None else [f"max_us = {_us(measure.max_ns)}"]
        lines += [] if measure.max_frac is None else [f"max_share = {measure.max_frac!r}"]
    for launches in budget.launches:
        lines += ["", "[launches]"]
        lines += [] if launches.maximum is None else [f"max = {launches.maximum}"]
        lines += (
            [] if launches.increase is None else [f"increase = {launches.increase}  # device ops a step beyond base"]
        )
    for share in budget.unaccounted:
        lines += [
            "",
            "# Idle time without explanation and time outside the trace, as a share of the step.",
            "[unaccounted]",
        ]
        lines.append(f"max_share = {share.max_frac!r}")
    for floor in budget.floors:
        lines += ["", "[floor]", f"ms = {floor.floor_ns / 1e6:g}", f"min_share = {floor.min_frac!r}"]
    return "\n".join(lines) + "\n"


def _limits(limits: "Limits") -> list[str]:
    lines = []
    if limits.relative is not None:
        lines.append(f"relative = {limits.relative!r}")
    if limits.absolute_ns is not None:
        lines.append(f"absolute_us = {_us(limits.absolute_ns)}")
    if limits.step_frac is not None:
        lines.append(f"step_share = {limits.step_frac!r}")
    return lines


def _us(time_ns: float) -> str:
    return f"{time_ns / 1000:.6g}"


def _text(text: str) -> str:
    """Quote a text; JSON's escapes are TOML's; what is no text (lone surrogates) is replaced."""
    return json.dumps(text.encode("utf-8", "replace").decode("utf-8"), ensure_ascii=False).replace("\x7f", "\\u007f")


def _pattern(text: str) -> str:
    """Quote a regular expression so that its backslashes stay single, where that can be done."""
    literal = text.isascii() and text.isprintable() and "'" not in text
    return f"'{text}'" if literal else _text(text)

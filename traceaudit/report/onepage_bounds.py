"""The questions of the one-page audit on what the step could be: floor, kernels, gain, and the decision."""

from typing import TYPE_CHECKING

from traceaudit.model.findings import Verdict
from traceaudit.report.distance_words import distance_text
from traceaudit.report.format import DOUBT, bytes_text, count_text, duration, factor, percent, shorten
from traceaudit.report.onepage_words import Block
from traceaudit.report.roofline_words import exchange_text

if TYPE_CHECKING:
    from traceaudit.model.results.onepage import Fix, FloorSide, KernelLine, OnePage

__all__ = ["decision_lines", "floor_block", "gain_block", "hidden_text", "kernels_answer"]

NAME_WIDTH = 60
WORTH_FRAC = 0.02


def floor_block(page: "OnePage") -> Block:
    """Give the least time for the step, and what lies between it and the step."""
    floor = page.floor
    if page.no_floor is not None:
        return Block("What floor?", f"unknown: {page.no_floor.reason}", (f"hint: {page.no_floor.hint}",))
    if floor is None:
        return Block("What floor?", "not asked: --model CONFIG gives the least time that the hardware allows")
    result = floor.roofline
    bounds, gap = result.floor, result.gap
    answer = f"{duration(bounds.expected_ns)} expected"
    if bounds.minimum_ns != bounds.expected_ns:
        answer += f", {duration(bounds.minimum_ns)} at least"
    evidence = []
    if gap is not None:
        if gap.factor < 1:
            answer += "; the step is SHORTER"
            evidence.append(gap.remark)
        else:
            answer += f"; the step takes {factor(gap.factor)} the expected"
            evidence.append(_factors(page))
    evidence.append(_basis(floor))
    if result.distance is not None:
        doubtful = page.completeness.verdict is Verdict.UNRELIABLE
        evidence.append(distance_text(result.distance) + (f" {DOUBT}" if doubtful else ""))
    exchanged = exchange_text(result.communication)
    if exchanged:
        evidence.append(f"communication, not in the floor: {exchanged}")
    return Block("What floor?", answer, tuple(evidence))


def _factors(page: "OnePage") -> str:
    """Write measured over floor with numerator and denominator named, and the factors that do not hold."""
    assert page.floor is not None  # noqa: S101  (the caller looked)
    result, asked = page.floor.roofline, page.floor.asked
    assert result.gap is not None  # noqa: S101  (the caller looked)
    gap, bounds, batch = result.gap, result.floor, result.setting.batch
    text = f"{factor(gap.factor)} = {duration(gap.measured.step_ns)} / {duration(bounds.expected_ns)} at batch {batch}"
    if bounds.minimum_ns != bounds.expected_ns:
        text += f", {factor(gap.factor_of_minimum)} over the minimum of {duration(bounds.minimum_ns)}"
    offered = next((one for one in page.step.readings if one.kind == "given"), None)
    if asked is not None and offered is not None:
        ratio = offered.step_ns / asked.floor.expected_ns
        text += (
            f"; had batch {asked.setting.batch} run, {factor(ratio)} = {duration(offered.step_ns)} / "
            f"{duration(asked.floor.expected_ns)}"
        )
    elif asked is not None:
        text += f"; at batch {asked.setting.batch} the floor is {duration(asked.floor.expected_ns)}"
    return text


def _basis(floor: "FloorSide") -> str:
    result = floor.roofline
    setting = result.setting
    size = bytes_text(result.weight_bytes.expected + result.kv_bytes)
    text = (
        f"{size} a GPU at {result.peak_gbps:,.0f} GB/s of {setting.gpu or 'the device'} ({floor.gpu_source}), "
        f"{result.floor.bound} bound; batch {setting.batch} ({floor.batch_source}), context "
        f"{setting.context_mean:,.0f} ({floor.context_source})"
    )
    if result.experts is not None and result.experts.minimum != result.experts.maximum:
        use = result.experts
        text += f"; {use.expected:.1f} of {use.count} experts a layer touched, {use.minimum:.0f} at least"
    return text


def hidden_text(lines: "tuple[KernelLine, ...]") -> str:
    """Say which kernels are not worth touching though the profile shows much of them."""
    if not lines:
        return ""
    named = ", ".join(shorten(line.row.shown_name, NAME_WIDTH // 2) for line in lines[:2])
    more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""  # noqa: PLR2004
    share = percent(sum(line.share_of_busy_frac for line in lines), 1)
    naive, saved = sum(line.op_time_ns for line in lines), sum(line.save_ns or 0.0 for line in lines)
    text = f"{named}{more}: {share} of the op time, {duration(naive)} a step, but hidden behind the host: removing "
    return text + (
        f"it saves about {duration(saved)}, re-timed"
        if len(lines) == 1
        else f"them one by one saves about {duration(saved)} in all, re-timed"
    )


def gain_block(page: "OnePage") -> Block:
    """Bound what work on the largest kernels can buy, with f and s named."""
    gain = page.gain
    if gain is None:
        return Block("What gain?", "no bound: the trace has no step with launches and ops to re-time")
    count = count_text(len(gain.names), "largest kernel")
    retimed = "everything" if gain.retimed_factor is None else factor(gain.retimed_factor)
    floor_ns = 0 if page.floor is None else page.floor.roofline.floor.expected_ns
    most = gain.retimed_factor
    answer = f"the {count} removed: {'' if gain.retimed_factor is None else 'about '}{retimed}, re-timed"
    if gain.retimed_ns < floor_ns <= gain.baseline_ns:
        most = gain.baseline_ns / floor_ns
        answer = f"the {count} removed: at most {factor(most)}, bounded by the floor ({retimed} re-timed)"
    if gain.tokens_per_second is not None and most is not None:
        after = gain.tokens_per_second * most
        answer += f" ({_rate(gain.tokens_per_second)} to {_rate(after)} tokens/s)"
    mark = DOUBT if page.completeness.verdict is Verdict.UNRELIABLE else ""
    busy, share = percent(gain.busy_share_frac, 1) + mark, percent(gain.top_share_frac, 1) + mark
    whole = "wall" if page.device.step.wall_ns is not None else "window"
    evidence = [f"busy is f = {busy} of the {whole}, they are s = {share} of the op time"]
    if gain.naive_factor is not None:
        evidence[0] += f": naive 1 / (1 - f s) = {factor(gain.naive_factor)}"
    if gain.profile_factor is not None:
        evidence[0] += f", not {factor(gain.profile_factor)} = 1 / (1 - s), which takes busy for the whole step"
    return Block("What gain?", answer, tuple(evidence))


def kernels_answer(page: "OnePage") -> str:
    """Say which kernel is worth most, or that none is worth anything."""
    known = [(line.save_ns, line) for line in page.kernels if line.save_ns is not None]
    if not known:
        return "the largest by op time; what removing them would save is not known: no launch rows to re-time"
    saved_ns, best = max(known, key=lambda pair: pair[0])
    whole = page.gain.baseline_ns if page.gain is not None else page.device.step.window_ns
    if saved_ns < WORTH_FRAC * whole:
        return f"none alone: removing any one saves about {duration(max(saved_ns, 0.0))} a step, re-timed"
    name = shorten(best.row.shown_name, NAME_WIDTH)
    return f"{name}: removing it saves {duration(saved_ns)} a step ({percent(saved_ns, whole)}), re-timed"


def decision_lines(page: "OnePage") -> tuple[tuple[str, str], ...]:
    """Give what to do in order, each with its evidence."""
    short = {line.row.name: line.row.shown_name for line in page.kernels}
    lines = []
    for number, fix in enumerate(page.fixes, 1):
        named = fix.names if "{names}" in fix.what else ()
        names = ", ".join(shorten(short.get(name, name), NAME_WIDTH) for name in named)
        what = fix.what.replace("{names}", names)
        lines.append((f"{number}. {what[:1].upper()}{what[1:]}{_bought(fix)}", fix.evidence))
    return tuple(lines)


def _bought(fix: "Fix") -> str:
    if fix.factor is None or fix.step_ns is None:
        return ""
    text = f": {'at most' if fix.is_bound else 'about'} {factor(fix.factor)}, to {duration(fix.step_ns)} a step"
    if fix.floor_binds:
        text += " (bounded by the floor)"
    if fix.tokens_per_second is not None:
        text += f", {_rate(fix.tokens_per_second)} tokens/s"
    return text


def _rate(tokens_per_second: float) -> str:
    """Write a rate with three digits or more.

    Examples
    --------
    >>> _rate(11_117.3), _rate(127.27), _rate(28.0)
    ('11,117', '127', '28.0')
    """
    return f"{tokens_per_second:,.0f}" if tokens_per_second >= 100 else f"{tokens_per_second:.1f}"  # noqa: PLR2004

"""The sentences that the table and the Markdown report of `roofline` share."""

from typing import TYPE_CHECKING

from traceaudit.report.format import bytes_text, count_text, duration, factor

if TYPE_CHECKING:
    from traceaudit.model.results.roofline import Communication, Gap, Roofline, Setting

__all__ = ["compute_text", "exchange_text", "floor_rows", "gap_texts", "ranks_text", "requests_text", "size_text"]


def requests_text(setting: "Setting") -> str:
    """Say what runs in the step."""
    context = f"{setting.context_min:,}"
    if setting.context_max != setting.context_min:
        context = f"{setting.context_min:,} to {setting.context_max:,} (mean {setting.context_mean:,.0f})"
    tokens = f", {setting.tokens_per_request} tokens each" if setting.tokens_per_request > 1 else ""
    cache = f", cache in {setting.kv_dtype}" if setting.kv_dtype else ""
    return f"batch {setting.batch:,}{tokens}, context {context}{cache}"


def ranks_text(setting: "Setting") -> str:
    """Say how the model is spread."""
    degrees = (("tp", setting.tp), ("ep", setting.ep), ("dp", setting.dp), ("pp", setting.pp))
    spread = ", ".join(f"{name} {degree}" for name, degree in degrees if degree > 1)
    return spread or "one GPU"


def size_text(setting: "Setting") -> str:
    """Say how large the model is."""
    if setting.parameters is None:
        return "counted by parameters and bits alone"
    active = setting.active_parameters or setting.parameters
    text = f"{setting.parameters / 1e9:,.2f} B parameters"
    return text if active > 0.9 * setting.parameters else f"{text}, {active / 1e9:,.2f} B active"


def floor_rows(result: "Roofline") -> tuple[tuple[str, str, str, str], ...]:
    """Give a row for each bound: name, bytes, time, what it stands for. One row where the bounds agree."""
    weights, floor = result.weight_bytes, result.floor
    bounds: tuple[tuple[str, int, int, str], ...] = (
        ("minimum", weights.minimum, floor.minimum_ns, "all tokens choose the same experts"),
        ("expected", weights.expected, floor.expected_ns, "tokens choose experts independently"),
        ("maximum", weights.maximum, floor.maximum_ns, "no two tokens share an expert"),
    )
    if weights.minimum == weights.maximum:
        bounds = (("floor", weights.expected, floor.expected_ns, "every weight and cached token is read once"),)
    return tuple(
        (name, bytes_text(size + result.kv_bytes), duration(time), meaning) for name, size, time, meaning in bounds
    )


def compute_text(result: "Roofline") -> str:
    """Say what bounds the step."""
    floor = result.floor
    if floor.compute_ns is None:
        return f"memory {duration(floor.memory_ns)}; compute not checked, for want of a peak"
    return f"{floor.bound} bound: memory {duration(floor.memory_ns)}, compute {duration(floor.compute_ns)}"


def exchange_text(communication: "Communication") -> str | None:
    """Say what GPUs send each other, None where they send nothing."""
    if not communication.messages:
        return None
    text = f"{bytes_text(communication.sent_bytes)} sent by a GPU in {count_text(communication.calls, 'call')}"
    if communication.transfer_ns is not None:
        text += (
            f": {duration(communication.transfer_ns)} at {communication.link_gbps:,.0f} GB/s of {communication.link}"
        )
    if communication.latency_ns is not None:
        low, high = communication.latency_ns
        text += f", and {duration(low)} to {duration(high)} of latency by rule of thumb"
    return text


def gap_texts(gap: "Gap") -> tuple[str, ...]:
    """Say how far the measured step is from the floor, numerator and denominator named."""
    lines = [gap.remark] if gap.remark else []
    lines.append(f"{factor(gap.factor)} = {gap.numerator} / {gap.denominator}")
    if abs(gap.factor_of_minimum - gap.factor) > 0.01 * gap.factor:
        lines.append(f"{factor(gap.factor_of_minimum)} over the minimum")
    lines += [f"another reading: {duration(r.step_ns)} ({r.source}), {factor(times)}" for r, times in gap.others]
    return tuple(lines)

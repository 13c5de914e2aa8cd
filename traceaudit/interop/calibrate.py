"""Measures what a GPU reaches: read, copy and triad bandwidth, and matrix rates. Needs torch and its device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from traceaudit.errors import MissingDataError, UnknownHardwareError
from traceaudit.model.hardware import lookup
from traceaudit.model.results.calibration import Calibration

if TYPE_CHECKING:
    import torch

__all__ = ["calibrate"]

ELEMENTS = 1 << 28
"""Elements of a buffer: 1 GiB of fp32, many times any cache."""

SIDE = 8192
"""Rows and columns of the matrices."""

WARMUP = 3
PER_REPEAT = 3


def calibrate(device: int = 0, *, repeats: int = 15, elements: int = ELEMENTS, side: int = SIDE) -> Calibration:
    """Measure a device.

    The fastest of the repeats counts: a ceiling is what the machine can do, not what it does on average.

    Parameters
    ----------
    device
        Ordinal of the device.
    repeats
        Times that each measurement is repeated.
    elements, side
        Size of the buffers, and of the matrices.

    Raises
    ------
    MissingDataError
        If torch is not installed, or finds no device.
    """
    torch = _torch(device)
    properties = torch.cuda.get_device_properties(device)
    with torch.cuda.device(device), torch.inference_mode():
        gbps = _bandwidths(torch, elements, repeats)
        torch.cuda.empty_cache()
        tflops, skipped = _rates(torch, side, repeats)
    today = time.strftime("%Y-%m-%d")
    return Calibration(
        name=properties.name,
        measured=f"{today}, torch {torch.__version__}, fastest of {repeats} repeats",
        gbps=gbps,
        tflops=tflops,
        skipped=skipped,
        peak_gbps=_peak(properties),
    )


def _torch(device: int) -> Any:  # noqa: ANN401  (the module)
    try:
        import torch
    except ImportError as exc:
        raise MissingDataError("calibrate needs torch", hint="pip install torch") from exc
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device >= count:
        raise MissingDataError(f"torch finds {count} devices, none with ordinal {device}", hint="run it on the GPU")
    return torch


def _seconds(torch: Any, run: Callable[[], object], repeats: int) -> float:  # noqa: ANN401
    """Return the seconds of one call, the fastest of the repeats."""
    for _ in range(WARMUP):
        run()
    best = float("inf")
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(PER_REPEAT):
            run()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end) / PER_REPEAT)
    return best / 1e3


def _bandwidths(torch: Any, elements: int, repeats: int) -> dict[str, float]:  # noqa: ANN401
    # Random values, since equal ones toggle fewer bits and run faster than data does.
    first, second, out = (torch.randn(elements, device="cuda") for _ in range(3))
    size = first.numel() * first.element_size()
    cases: dict[str, tuple[int, Callable[[], object]]] = {
        "read": (size, first.amax),
        "copy": (2 * size, lambda: out.copy_(first)),
        "triad": (3 * size, lambda: torch.add(first, second, alpha=3.0, out=out)),
    }
    return {name: moved / _seconds(torch, run, repeats) / 1e9 for name, (moved, run) in cases.items()}


def _rates(torch: Any, side: int, repeats: int) -> tuple[dict[str, float], dict[str, str]]:  # noqa: ANN401
    found: dict[str, float] = {}
    skipped: dict[str, str] = {}
    makers: dict[str, Callable[[], Callable[[], torch.Tensor]]] = {
        "bf16": lambda: _product(torch, torch.bfloat16, side),
        "fp16": lambda: _product(torch, torch.float16, side),
        "tf32": lambda: _product(torch, torch.float32, side, tf32=True),
        "fp32": lambda: _product(torch, torch.float32, side, tf32=False),
        "fp8": lambda: _scaled_product(torch, side),
        "int8": lambda: _integer_product(torch, side),
    }
    for dtype, make in makers.items():
        try:
            found[dtype] = 2 * side**3 / _seconds(torch, make(), repeats) / 1e12
        except (RuntimeError, ValueError, AttributeError, NotImplementedError) as exc:
            skipped[dtype] = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        torch.cuda.empty_cache()
    return found, skipped


def _product(torch: Any, dtype: Any, side: int, *, tf32: bool = False) -> Callable[[], torch.Tensor]:  # noqa: ANN401
    torch.backends.cuda.matmul.allow_tf32 = tf32
    left, right = (torch.randn(side, side, device="cuda").to(dtype) for _ in range(2))
    return lambda: left @ right


def _scaled_product(torch: Any, side: int) -> Callable[[], torch.Tensor]:  # noqa: ANN401
    left, right = (torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    multiply = torch._scaled_mm  # noqa: SLF001  (torch has no public name for it)
    return lambda: multiply(left, right.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)


def _integer_product(torch: Any, side: int) -> Callable[[], torch.Tensor]:  # noqa: ANN401
    left, right = (torch.randint(-9, 9, (side, side), device="cuda", dtype=torch.int8) for _ in range(2))
    multiply = torch._int_mm  # noqa: SLF001  (same)
    return lambda: multiply(left, right.t())


def _peak(properties: Any) -> float | None:  # noqa: ANN401  (torch's own)
    try:
        return lookup(
            properties.name,
            sms=properties.multi_processor_count,
            memory_bytes=properties.total_memory,
            capability=f"{properties.major}.{properties.minor}",
        ).mem_bw_gbs
    except UnknownHardwareError:
        return None

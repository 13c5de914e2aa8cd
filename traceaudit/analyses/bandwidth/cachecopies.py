"""Copies of the KV cache within a step: joined anew for each token, or written out once for each query head."""

import numpy as np

from traceaudit.model.bytes.shares import OpWork
from traceaudit.model.bytes.work import Family
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.schema import I64

__all__ = ["cache_copies"]

MATTERS_FRAC = 0.02
"""Share of the op time from which on it is worth a warning."""


def cache_copies(view: DeviceView, work: OpWork, counted: I64) -> Finding | None:
    """Return the finding on ops that write all keys or values that attention reads, None where there are none.

    Parameters
    ----------
    view, work
        A device, and what its ops move.
    counted
        Ops of the used steps, from which the means of a step are made.
    """
    families = np.array([one.family is Family.CACHE for one in work.works] or [False])
    copying = families[np.maximum(work.work, 0)] & (work.work >= 0)
    if not copying.any():
        return None
    duration = view.ops.end_ns - view.ops.start_ns
    spent = int(duration[copying].sum())
    own = counted[copying[counted]]
    steps = len(np.unique(view.windows.step[counted])) or 1
    a_step = f"{len(own) / steps:,.0f} a step, {duration[own].sum() / steps / 1e3:,.1f} µs"
    expanded = any(one.family is Family.CACHE and one.widens for one in work.works)
    return Finding(
        "kv_copied",
        Severity.WARNING if spent >= MATTERS_FRAC * int(duration.sum()) else Severity.INFO,
        f"kernels write all keys or values that attention then reads ({a_step if len(own) else 'in the trace'})"
        + (": one head for each query head" if expanded else ""),
        "let attention share the heads itself (grouped queries: enable_gqa, or a kernel that takes them)"
        if expanded
        else "keep the cache in place (a static or paged cache), with one head for the queries that share it",
        count=int(copying.sum()),
        impact_ns=spent,
        rank=view.rank,
        device=view.device,
    )

"""Achieved bandwidth of each kernel: what it moved by the best source, how fast, and whether that can be true."""

from traceaudit.analyses.bandwidth.cachecopies import cache_copies
from traceaudit.analyses.bandwidth.ceilings import peaks_of
from traceaudit.analyses.bandwidth.parts import with_parts
from traceaudit.analyses.bandwidth.rates import rate_kernels
from traceaudit.analyses.bandwidth.sources import Sourced, misfit, other_run, sources_of, unlike_model

__all__ = [
    "Sourced",
    "cache_copies",
    "misfit",
    "other_run",
    "peaks_of",
    "rate_kernels",
    "sources_of",
    "unlike_model",
    "with_parts",
]

"""What limits a kernel, where its bytes come from, and whether its rate can be true."""

from dataclasses import dataclass

from traceaudit.model.bytes.work import Family, Source, Work
from traceaudit.model.results.kernels import Bound, MemoryLevel

__all__ = ["MATTERS_FRAC", "Facts", "bound_of", "doubt_of", "fits_in_cache", "level_of", "underfilled"]

NEAR = 0.25
"""Share of the time that the speed of light must explain for bandwidth or FLOP to count as the limit."""

SHORT_NS = 5_000
"""Starting and draining a kernel takes one to three microseconds: below this length that is most of it."""

TINY_NS = 3_000
GOOD = 0.6
"""A kernel that reaches this share of its speed of light is not starved, however small its grid."""

FILLED = 0.75
"""Share of multiprocessors with a block from which on filling the others wins little."""

MATTERS_FRAC = 0.02
"""Share of the op time from which on underfilled launches are worth a finding."""

L2_SHARE = 4
"""Data of a quarter of the cache outlives the next few kernels."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at; times are means of a launch in ns, None where not known.

    Attributes
    ----------
    blocks
        Of the largest grid, where launches of several are judged together (`mixed`).
    no_peak
        What is counted, of ``bytes`` and ``FLOP``, but has no known peak to be held against.
    """

    mean_ns: float
    blocks: int | None
    sms: int | None
    memory_ns: float | None
    compute_ns: float | None
    mixed: bool = False
    no_peak: tuple[str, ...] = ()

    @property
    def filled_frac(self) -> float | None:
        """Multiprocessors with a block as a share of all; 1 where there is a block for each."""
        return None if self.blocks is None or not self.sms else min(self.blocks / self.sms, 1.0)

    @property
    def gain_frac(self) -> float:
        """The most of the time that filling all multiprocessors could win, down to the speed of light."""
        filled = 1.0 if self.filled_frac is None else self.filled_frac
        return max(1.0 - max(filled, self.sol_frac or 0.0), 0.0)

    @property
    def sol_frac(self) -> float | None:
        """Speed of light over the time taken."""
        known = [time for time in (self.memory_ns, self.compute_ns) if time is not None]
        return max(known) / self.mean_ns if known and self.mean_ns else None


def bound_of(facts: Facts) -> tuple[Bound | None, str]:
    """Return what limits a kernel and the rule that decided."""
    sol = facts.sol_frac
    if sol is not None and sol >= NEAR:
        memory, compute = facts.memory_ns or 0.0, facts.compute_ns or 0.0
        which = Bound.MEMORY if memory >= compute else Bound.COMPUTE
        return which, (
            f"its {'bytes' if which is Bound.MEMORY else 'FLOP'} explain {sol:.0%} of the time, {NEAR:.0%} or more"
        )
    if sol is None or facts.no_peak:
        return _unknown(facts)
    if facts.mean_ns < SHORT_NS:
        return Bound.LAUNCH, (
            f"bytes and FLOP explain {sol:.1%} of less than {SHORT_NS // 1000} µs: its start and end take the rest"
        )
    return Bound.LATENCY, f"bytes and FLOP explain {sol:.1%} of the time, less than {NEAR:.0%}{_few_blocks(facts)}"


def _unknown(facts: Facts) -> tuple[Bound | None, str]:
    if facts.mean_ns < TINY_NS:
        return Bound.LAUNCH, f"shorter than {TINY_NS // 1000} µs, about what a kernel's start and end take"
    why = (
        f"no peak is known for its {' and '.join(facts.no_peak)}" if facts.no_peak else "nothing is known of its bytes"
    )
    if facts.blocks is not None and facts.sms is not None and 2 * facts.blocks <= facts.sms:
        return Bound.LATENCY, f"{why}{_few_blocks(facts)}"
    return None, why


def _few_blocks(facts: Facts) -> str:
    if facts.blocks is None or facts.sms is None or facts.blocks >= facts.sms:
        return ""
    return f"; {'at most ' if facts.mixed else ''}{facts.blocks} blocks on {facts.sms} multiprocessors"


def underfilled(facts: Facts) -> bool:
    """Return whether launches leave so many multiprocessors without a block that it matters, and are slow for it.

    Where nothing tells how fast they could be, half of them must be empty.
    """
    filled, sol = facts.filled_frac, facts.sol_frac
    if filled is None or filled >= FILLED or facts.mean_ns < SHORT_NS:
        return False
    return filled <= 1 / 2 if sol is None else sol < GOOD


def level_of(work: Work, read: int, moved: int, l2_bytes: int | None) -> MemoryLevel | None:
    """Return where most of a launch's bytes come from, None where nothing is known of the cache.

    Weights and KV cache are read once a step, with all others in between, so they come from memory. What the op before
    has just written is still in cache, as long as it is small against it.
    """
    if l2_bytes is None or work.family in {Family.COPY, Family.OTHER}:
        return None
    recent = work.family.activations_only or (work.family.streams and not read)
    return MemoryLevel.L2 if recent and moved * L2_SHARE <= l2_bytes else MemoryLevel.DRAM


def fits_in_cache(work: Work, moved: int, launches: int, launches_per_step: float, l2_bytes: int | None) -> bool:
    """Return whether a cache can explain a rate above memory bandwidth: the working set fits, and is used again.

    Launches that stream weights are each on other weights, so those of a whole step would have to fit.
    """
    if l2_bytes is None or moved > l2_bytes:
        return False
    if work.family.streams:
        return launches > 1 and moved * max(launches_per_step, 1.0) <= l2_bytes
    return launches > 1 or work.family.activations_only


_FAMILY_DOUBTS = {
    Family.EXPERTS: "fewer different experts were touched than counted",
    Family.ATTENTION: "a window or shorter sequences than the cache's shape shows",
    Family.GEMM: "weights smaller than their type says (packed), or reused from cache",
    Family.COMPILED: "an argument counted whole of which the kernel touches a part",
    Family.COPY: "the record's size or duration is wrong",
}


def doubt_of(work: Work) -> str:
    """Name the assumption behind a rate above peak that is most likely false."""
    if work.source is Source.SPEC:
        return f"the bytes given in {work.assumption} are too many: all experts, or KV once for each query head?"
    if work.source is Source.MODEL:
        return f"batch, context or format are not what was given ({work.assumption})"
    if "shapes of " in work.assumption:
        return f"the other run had larger shapes ({work.assumption})"
    return _FAMILY_DOUBTS.get(work.family, "an input counted whole of which the kernel reads a part")

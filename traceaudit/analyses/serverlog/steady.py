"""The steady state: the stretch of lines in which most tokens were generated, between ramp and drain."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from traceaudit.model.results.serverlog import Stretch, Use
from traceaudit.model.serverlines import Sample, SampleKind

__all__ = ["Steady", "level_of", "steady_of", "stretches_of"]

BAND_FRAC = 0.1
FEWEST = 2
DILUTED = frozenset({SampleKind.DECODE, SampleKind.STATS})


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady samples, and what each sample of the load was used for."""

    samples: tuple[Sample, ...]
    uses: tuple[Use, ...]


def level_of(batches: Sequence[int]) -> int:
    """Return the batch at or below which half of all tokens were generated: the median weighted by the batch.

    Every line stands for about as many steps, so a batch of b stands for b times their tokens; the long tail of a
    run, at a batch of one or two, weighs little.

    Examples
    --------
    >>> level_of([16, 31, 58, 66, 67, 68, 67, 66, 40, 24, 9, 2])
    66
    """
    half = sum(batches) / 2
    total = 0
    for batch in sorted(batches):
        total += batch
        if total >= half:
            return batch
    return 0


def steady_of(samples: Sequence[Sample]) -> Steady:
    """Find the steady samples of one engine in one load.

    They reach from the first to the last sample within 10 % (or half a request) of `level_of`. The first line of a
    load is left out, if others remain: its rate counts the idle time before.
    """
    batches = [sample.running for sample in samples]
    level = level_of(batches)
    if not level:
        return Steady((), (Use.IDLE,) * len(samples))
    width = max(0.5, BAND_FRAC * level)
    near = [index for index, batch in enumerate(batches) if abs(batch - level) <= width]
    start, end = near[0], near[-1] + 1
    uses = [Use.RAMP] * start + [Use.STEADY] * (end - start) + [Use.DRAIN] * (len(samples) - end)
    if start == 0 and samples[0].kind in DILUTED and end > FEWEST:
        uses[0] = Use.FIRST
    uses = [Use.IDLE if not batch and use is not Use.STEADY else use for use, batch in zip(uses, batches, strict=True)]
    steady = tuple(sample for sample, use in zip(samples, uses, strict=True) if use is Use.STEADY)
    return Steady(steady, tuple(uses))


def stretches_of(samples: Sequence[Sample], uses: Sequence[Use]) -> tuple[Stretch, ...]:
    """Sum successive samples of the same use up."""
    found = []
    for use, group in groupby(zip(samples, uses, strict=True), key=lambda pair: pair[1]):
        part = [sample for sample, _ in group]
        batches = [sample.running for sample in part]
        found.append(Stretch(use, len(part), part[0].line, part[-1].line, min(batches), max(batches)))
    return tuple(found)

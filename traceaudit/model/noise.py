"""How sure a difference of two sides is: noise within steps, between steps and between runs.

Each step of a run gives one sum per kernel. A run's value is the median of its steps, a side's value the median of its
runs. The value's variance has two parts.

Between steps: the bootstrap variance of the run's median, drawn from the steps of all runs of both sides, each less its
run's median: a step that took long for reasons of its own then counts in the runs that happen to lack one, too. The
variance is computed exactly from the order statistics, which is what resampling tends to, so there is no seed and no
dependence on any order.

Between runs: fresh processes differ by more than their steps do. Bootstrapping three runs would understate that badly,
so the variance of the runs' medians, pooled over both sides, is combined with a recorded usual value that counts as
much as `PRIOR_RUNS` degrees of freedom. Measured noise above the usual value is taken as it is, and where it is far
above (`PRIOR_FITS`) the usual value counts for nothing. With one run on each side nothing is measured, and a wider
recorded value stands in its place. The fewer degrees of freedom, the wider the band (Student's t).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = [
    "PRIORS",
    "PRIOR_RUNS",
    "Band",
    "Effect",
    "Prior",
    "RunSamples",
    "SideStatistic",
    "compare",
    "median_variance",
    "side_statistic",
]

F64 = npt.NDArray[np.float64]

PRIOR_RUNS = 8
"""Degrees of freedom that the recorded usual noise counts for, beside those of the measured runs."""

PRIOR_FITS = 4.0
"""A measured variance of more than this many times the usual one is no accident: the usual one does not apply."""

INTERVAL = 0.95
"""Coverage of the confidence interval that is shown; the band that decides is wider (`z_of`)."""

EXACT_STEPS = 256
"""Above this number of steps the bootstrap variance of a median is taken from its limit, which then holds well."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Usual standard deviation between runs of identical code, ``hypot(relative * value, absolute_ns)``.

    Attributes
    ----------
    relative, absolute_ns
        What runs in fresh processes on one device show.
    unknown_relative, unknown_absolute_ns
        What is assumed while nothing was measured: high enough for nearly every kernel seen.
    """

    relative: float
    absolute_ns: float
    unknown_relative: float
    unknown_absolute_ns: float


# Fitted to fresh processes of identical code on two H200 (traces/gate, 16 in graphs and 12 eager): kernels of 15 µs a
# step and more differ by 0.4 to 1 % between runs of four steps, the noisiest, a single launch of 36 µs, by 1.9 %.
# Collectives wait inside for peers; copies share a bus. What the host sets differs by 30 % between eager runs.
PRIORS: Mapping[str, Prior] = {
    "compute": Prior(0.003, 120.0, 0.008, 350.0),
    "comm": Prior(0.05, 500.0, 0.10, 1000.0),
    "memcpy": Prior(0.02, 200.0, 0.04, 450.0),
    "memset": Prior(0.02, 200.0, 0.04, 450.0),
    "device": Prior(0.004, 200.0, 0.006, 450.0),
    "host": Prior(0.02, 5_000.0, 0.50, 50_000.0),
}

# Variance of the median of n standard normal values; order statistics, beyond the table pi / 2n.
_MEDIAN_VARIANCE = (1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104, 0.1682, 0.1661)


@dataclass(frozen=True, slots=True)
class RunSamples:
    """Values of one run in ns, one a step, and the spread of launches within a step (variance of a step's sum)."""

    steps: tuple[float, ...]
    launch_variance: float | None = None
    rounding_variance: float = 0.0


@dataclass(frozen=True, slots=True)
class SideStatistic:
    """A side's value and what is known of its noise.

    Attributes
    ----------
    value_ns
        Median over runs of the median over steps.
    runs
        The samples.
    residuals
        Distances of steps from their run's median, for runs of more than one step.
    step_sd_ns
        Standard deviation of steps within a run, None with single steps.
    run_squares
        Sum of squared distances of the runs' medians from their mean.
    """

    value_ns: float
    runs: tuple[RunSamples, ...]
    residuals: tuple[float, ...]
    step_sd_ns: float | None
    run_squares: float


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference, head minus base, with its noise; times per step in ns.

    Attributes
    ----------
    base_ns, head_ns
        Values of the sides, None where there is none.
    error_ns
        Standard error of the difference.
    noise_ns
        Band that decides: a difference inside it may be chance, allowing for all the differences looked at.
    hidden_ns
        How much more than it seems the difference may be, looked at alone.
    low_ns, high_ns
        Confidence interval of the difference.
    step_sd_ns, run_sd_ns
        Noise between steps of a run and between runs of a side; None where not measured.
    launch_sd_ns
        Spread of the launches within a step.
    """

    base_ns: float | None
    head_ns: float | None
    error_ns: float
    noise_ns: float
    hidden_ns: float
    low_ns: float
    high_ns: float
    step_sd_ns: float | None = None
    run_sd_ns: float | None = None
    launch_sd_ns: float | None = None

    @property
    def delta_ns(self) -> float:
        """Head minus base; a missing side counts as 0."""
        return (self.head_ns or 0.0) - (self.base_ns or 0.0)

    @property
    def ratio(self) -> float | None:
        """Head over base, None where one of them is missing or base is 0."""
        return self.head_ns / self.base_ns if self.base_ns and self.head_ns is not None else None

    @property
    def shown(self) -> bool:
        """Whether the difference is larger than its noise."""
        return abs(self.delta_ns) > self.noise_ns


@dataclass(frozen=True, slots=True)
class Band:
    """How wide the band of a difference must be, in standard errors.

    Attributes
    ----------
    confidence
        Chance that no difference leaves its band upwards when the code is the same.
    tests
        Differences looked at together (Bonferroni).
    """

    confidence: float
    tests: int

    def factor(self, degrees: int | None, *, alone: bool = False) -> float:
        """Return the one-sided quantile, of a variance with so many degrees of freedom; None: it is known.

        Parameters
        ----------
        alone
            Make no allowance for the other differences.

        Examples
        --------
        >>> round(Band(0.99, 40).factor(None), 2), round(Band(0.99, 40).factor(12), 2)
        (3.48, 4.72)
        """
        z = NormalDist().inv_cdf(1 - (1 - self.confidence) / (1 if alone else max(self.tests, 1)))
        return _student(z, degrees)


def _student(z: float, degrees: int | None) -> float:
    """Turn a normal quantile into Student's, by Fisher's expansion; within 1 % from 5 degrees of freedom on."""
    if degrees is None:
        return z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    wider: float = sum(term / degrees**power for power, term in enumerate(terms, 1))
    return z + wider


def side_statistic(runs: Sequence[RunSamples]) -> SideStatistic:
    """Reduce the runs of a side to its value and noise."""
    medians = np.array([np.median(run.steps) for run in runs], np.float64)
    several = [(run, median) for run, median in zip(runs, medians.tolist(), strict=True) if len(run.steps) > 1]
    spreads = sorted(float(np.var(run.steps, ddof=1)) for run, _ in several)
    return SideStatistic(
        value_ns=float(np.median(medians)),
        runs=tuple(runs),
        residuals=tuple(value - median for run, median in several for value in run.steps),
        step_sd_ns=math.sqrt(float(np.mean(spreads))) if spreads else None,
        run_squares=float(np.square(np.sort(medians) - medians.mean()).sum()),
    )


def compare(base: SideStatistic | None, head: SideStatistic | None, prior: Prior, band: Band) -> Effect:
    """Return the difference of two sides with its noise; from nothing, where only one side has a value."""
    sides = [side for side in (base, head) if side is not None]
    runs = tuple(run for side in sides for run in side.runs)
    level = sum(abs(side.value_ns) for side in sides) / len(sides)
    residuals = np.sort(np.array([value for side in sides for value in side.residuals], np.float64))
    squares, degrees = sum(side.run_squares for side in sides), len(runs) - len(sides)
    variance, certain = _run_variance(prior, level, _step_variance(runs, residuals), squares, degrees)
    error = math.sqrt(variance * sum(median_variance(len(side.runs)) for side in sides))
    delta = (0.0 if head is None else head.value_ns) - (0.0 if base is None else base.value_ns)
    half = _student(NormalDist().inv_cdf((1 + INTERVAL) / 2), certain) * error
    spreads = [side.step_sd_ns for side in sides if side.step_sd_ns is not None]
    return Effect(
        base_ns=None if base is None else base.value_ns,
        head_ns=None if head is None else head.value_ns,
        error_ns=error,
        noise_ns=band.factor(certain) * error,
        hidden_ns=band.factor(certain, alone=True) * error,
        low_ns=delta - half,
        high_ns=delta + half,
        step_sd_ns=math.sqrt(sum(spread**2 for spread in spreads) / len(spreads)) if spreads else None,
        run_sd_ns=math.sqrt(squares / degrees) if degrees else None,
    )


def median_variance(count: int) -> float:
    """Return the variance of the median of `count` normal values of variance 1."""
    return _MEDIAN_VARIANCE[count - 1] if count <= len(_MEDIAN_VARIANCE) else math.pi / (2 * count)


def _run_variance(prior: Prior, level: float, within: float, squares: float, degrees: int) -> tuple[float, int | None]:
    """Return the variance of a run's value around its side's, and its degrees of freedom (None: taken as known)."""
    if not degrees:
        return (prior.unknown_relative * level) ** 2 + prior.unknown_absolute_ns**2 + within, None
    usual = (prior.relative * level) ** 2 + prior.absolute_ns**2 + within
    measured = squares / degrees
    if measured > PRIOR_FITS * usual:
        return measured, degrees
    blended = (PRIOR_RUNS * usual + squares) / (PRIOR_RUNS + degrees)
    return max(blended, measured), PRIOR_RUNS + degrees


def _step_variance(runs: Sequence[RunSamples], residuals: F64) -> float:
    """Return the mean over runs of the bootstrap variance of a run's median, whole-microsecond rounding included."""
    return float(np.mean(sorted(_median_variance(run, residuals) + run.rounding_variance for run in runs)))


def _median_variance(run: RunSamples, residuals: F64) -> float:
    """Return the bootstrap variance of a run's median; of a single step, what its launches' spread makes likely."""
    count = len(run.steps)
    if not len(residuals):
        return run.launch_variance or 0.0
    if len(residuals) > EXACT_STEPS or count > EXACT_STEPS:
        reach = len(residuals) / (2 * math.sqrt(count))  # one standard deviation of the median's rank
        middle = (len(residuals) - 1) / 2
        low, high = np.interp([middle - reach, middle + reach], np.arange(len(residuals)), residuals)
        return float(((high - low) / 2) ** 2)
    # With an even number the median is the mean of two order statistics, whose variance is at most their mean variance.
    return float(np.mean([_variance(residuals, weight) for weight in _middle_weights(len(residuals), count)]))


def _variance(values: F64, weight: F64) -> float:
    return float(weight @ np.square(values - weight @ values))


@cache
def _middle_weights(pool: int, count: int) -> tuple[F64, ...]:
    """Return how likely each of the pooled values is the middle one (or each of the two) of `count` draws."""
    ranks = sorted({(count + 1) // 2, count // 2 + 1})
    return tuple(_rank_weights(pool, count, rank) for rank in ranks)


def _rank_weights(pool: int, count: int, rank: int) -> F64:
    """Return the chance that the rank-th smallest of `count` draws is each of the sorted values.

    It is at most the i-th value when at least `rank` of the draws are among the first i: a binomial tail.
    """
    drawn = np.arange(rank, count + 1)
    ways = np.array([math.comb(count, int(number)) for number in drawn], np.float64)
    share = np.arange(pool + 1)[:, None] / pool
    tail = (ways * share**drawn * (1 - share) ** (count - drawn)).sum(axis=1)
    return np.diff(tail)

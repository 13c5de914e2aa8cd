import math

import numpy as np
import pytest

from traceaudit.model.noise import (
    PRIOR_RUNS,
    PRIORS,
    Band,
    Effect,
    RunSamples,
    compare,
    median_variance,
    side_statistic,
)

PRIOR = PRIORS["compute"]
STEADY = RunSamples((100.0,) * 5)


TEN = Band(0.99, 10)


def effect(base, head, band=TEN, prior=PRIOR):
    return compare(side_statistic(base), side_statistic(head), prior, band)


def variance_of(samples, *others):
    """The step part of the variance of two runs, from an effect of which everything else is known."""
    found = effect([RunSamples(samples)], [RunSamples(others or samples)])
    level = (np.median(samples) + np.median(others or samples)) / 2
    known = (PRIOR.unknown_relative * level) ** 2 + PRIOR.unknown_absolute_ns**2
    return found.error_ns**2 / 2 - known


@pytest.mark.parametrize("steps", [3, 5, 9, 21])
def test_the_step_variance_is_that_of_drawing_again_and_again(steps):
    rng = np.random.default_rng(steps)
    values = 1e6 + rng.normal(0, 1e4, steps)
    pool = np.tile(values - np.median(values), 2)
    drawn = np.median(pool[rng.integers(0, len(pool), (40_000, steps))], axis=1).var()
    assert variance_of(tuple(values)) == pytest.approx(drawn, rel=0.05)


@pytest.mark.parametrize("steps", [2, 4, 20])
def test_with_an_even_number_of_steps_it_errs_on_the_large_side(steps):
    rng = np.random.default_rng(steps)
    values = 1e6 + rng.normal(0, 1e4, steps)
    pool = np.tile(values - np.median(values), 2)
    drawn = np.median(pool[rng.integers(0, len(pool), (40_000, steps))], axis=1).var()
    assert 0.95 * drawn <= variance_of(tuple(values)) <= 2.5 * drawn


def test_many_steps_use_the_limit_of_the_bootstrap():
    rng = np.random.default_rng(1)
    values = tuple(1e6 + rng.normal(0, 1e4, 2001))
    assert variance_of(values) == pytest.approx(math.pi / 2 * 1e8 / 2001, rel=0.2)


def test_the_order_of_steps_and_runs_is_of_no_matter():
    one, other = RunSamples((5.0, 1.0, 3.0)), RunSamples((2.0, 9.0, 4.0))
    turned = RunSamples((3.0, 5.0, 1.0))
    assert effect([one, other], [STEADY]) == effect([other, turned], [STEADY])


def test_a_single_step_takes_its_noise_from_its_launches():
    quiet = effect([RunSamples((1000.0,), launch_variance=0.0)], [RunSamples((1000.0,), launch_variance=0.0)])
    loud = effect([RunSamples((1000.0,), launch_variance=400.0)], [RunSamples((1000.0,), launch_variance=400.0)])
    assert loud.error_ns**2 - quiet.error_ns**2 == pytest.approx(2 * 400.0)
    assert loud.step_sd_ns is None


def test_one_run_a_side_has_the_wider_recorded_noise():
    one = effect([RunSamples((1e6,) * 5)], [RunSamples((1e6,) * 5)])
    assert one.run_sd_ns is None
    assert one.error_ns == pytest.approx(math.sqrt(2) * math.hypot(0.008 * 1e6, 350.0))


def test_three_runs_blend_measured_and_usual_noise():
    runs = [RunSamples((value,) * 5) for value in (999_000.0, 1_000_000.0, 1_001_000.0)]
    found = effect(runs, runs)
    usual = (0.003 * 1e6) ** 2 + 120.0**2
    squares = 4 * 1000.0**2  # two sides of 1 + 0 + 1
    blended = (PRIOR_RUNS * usual + squares) / (PRIOR_RUNS + 4)
    assert found.run_sd_ns == pytest.approx(1000.0)
    assert found.error_ns == pytest.approx(math.sqrt(2 * median_variance(3) * blended))
    assert found.noise_ns == pytest.approx(found.error_ns * Band(0.99, 10).factor(PRIOR_RUNS + 4))


@pytest.mark.parametrize(("spread", "degrees"), [(4_000.0, PRIOR_RUNS + 4), (100_000.0, 4)])
def test_noise_above_the_usual_is_taken_as_measured(spread, degrees):
    """Far above it, the usual noise does not even lend its degrees of freedom."""
    runs = [RunSamples((1e6 + distance,) * 5) for distance in (-spread, 0.0, spread)]
    found = effect(runs, runs)
    assert found.error_ns == pytest.approx(math.sqrt(2 * median_variance(3)) * spread)
    assert found.noise_ns == pytest.approx(found.error_ns * Band(0.99, 10).factor(degrees))


def test_the_value_is_the_median_of_medians():
    runs = [RunSamples((1.0, 2.0, 100.0)), RunSamples((4.0, 5.0, 6.0)), RunSamples((7.0, 8.0, 9.0))]
    found = effect(runs, [RunSamples((10.0,) * 3)])
    assert (found.base_ns, found.head_ns, found.delta_ns, found.ratio) == (5.0, 10.0, 5.0, 2.0)


def test_an_effect_on_one_side_only_is_a_difference_from_nothing():
    statistic, band = side_statistic([RunSamples((500.0,) * 5)]), Band(0.99, 10)
    new, gone = compare(None, statistic, PRIOR, band), compare(statistic, None, PRIOR, band)
    assert (new.base_ns, new.head_ns, new.delta_ns, new.ratio) == (None, 500.0, 500.0, None)
    assert (gone.base_ns, gone.head_ns, gone.delta_ns, gone.ratio) == (500.0, None, -500.0, None)
    assert new.noise_ns == gone.noise_ns == band.factor(None) * new.error_ns
    several = side_statistic([RunSamples((400.0,) * 5), RunSamples((600.0,) * 5)])
    assert compare(None, several, PRIOR, band).run_sd_ns == pytest.approx(math.sqrt(2) * 100)


def test_the_interval_is_around_the_difference():
    found = effect([STEADY], [RunSamples((200.0,) * 5)])
    assert (found.low_ns + found.high_ns) / 2 == pytest.approx(100.0)
    assert found.high_ns - found.delta_ns == pytest.approx(1.96 * found.error_ns, rel=1e-3)


def test_rounded_times_widen_the_band():
    coarse = [RunSamples((1000.0,) * 5, rounding_variance=90.0)]
    fine = [RunSamples((1000.0,) * 5)]
    assert effect(coarse, coarse).error_ns > effect(fine, fine).error_ns


def test_the_band_widens_with_the_number_of_differences():
    assert Band(0.99, 1).factor(None) < Band(0.99, 10).factor(None) < Band(0.999, 10).factor(None)
    assert Band(0.99, 0).factor(None) == Band(0.99, 1).factor(None) == Band(0.99, 10).factor(None, alone=True)


@pytest.mark.parametrize(
    ("confidence", "degrees", "quantile"),
    [(0.975, 10, 2.228), (0.995, 5, 4.032), (0.999, 12, 3.930), (0.9995, 8, 5.041), (0.9999, 30, 4.234)],
)
def test_few_degrees_of_freedom_widen_it_as_students_table_says(confidence, degrees, quantile):
    assert Band(confidence, 1).factor(degrees) == pytest.approx(quantile, rel=0.01)


def test_the_variance_of_a_median_falls_with_the_number_of_runs():
    found = [median_variance(count) for count in range(1, 30)]
    assert found == sorted(found, reverse=True)
    rng = np.random.default_rng(0)
    for count in (3, 5, 12):
        assert np.median(rng.normal(size=(100_000, count)), axis=1).var() == pytest.approx(
            median_variance(count), rel=0.15
        )


def test_a_difference_is_shown_beyond_its_noise_only():
    assert Effect(100.0, 111.0, 1.0, 10.0, 5.0, 0.0, 0.0).shown
    assert not Effect(100.0, 110.0, 1.0, 10.0, 5.0, 0.0, 0.0).shown

"""The sentences of a prediction."""

from dataclasses import replace

import pytest

from traceaudit.model.results.whatif import DeviceWhatIf
from traceaudit.report.whatif_words import headline, remarks

MS = 1e6
FASTER = DeviceWhatIf(
    rank=0,
    device=0,
    name=None,
    changes=("gemm=2",),
    baseline_ns=10 * MS,
    predicted_ns=8 * MS,
    low_ns=7 * MS,
    high_ns=9 * MS,
    naive_ns=6 * MS,
    busy_share_frac=0.8,
    bound_by="host",
    changed_op_time_ns=4 * MS,
    matched={"gemm=2": 3},
    reasons=(),
    kernels=(),
    steps=3,
)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {},
            (
                "10.0 ms a step becomes 8.00 ms (between 7.00 ms and 9.00 ms): 2.00 ms or 20.0% saved, 1.25 times as "
                "fast; then the host bounds the step"
            ),
        ),
        (
            {"predicted_ns": 12 * MS, "low_ns": 12 * MS, "high_ns": 12 * MS, "bound_by": "both"},
            "10.0 ms a step becomes 12.0 ms: 2.00 ms or 20.0% more; then host and device would each take it alone",
        ),
        (
            {"predicted_ns": 10 * MS, "low_ns": 10 * MS, "high_ns": 10 * MS, "bound_by": "device"},
            "10.0 ms a step stays as it is; the device bounds the step",
        ),
        (
            {"changes": (), "bound_by": "outside"},
            "10.0 ms a step without a change; most of it is time outside the trace",
        ),
    ],
)
def test_what_the_step_becomes(changed, text):
    assert headline(replace(FASTER, **changed)) == text


def test_the_naive_bound_is_that_of_a_change():
    assert next(remarks(FASTER)).startswith(
        "Naive bound: 6.00 ms, the step minus the op time of the change (4.00 ms); busy"
    )
    plain = next(remarks(replace(FASTER, changes=())))
    assert plain == "Busy share f = 0.800 of the step, so no kernel work saves more than 80.0%."

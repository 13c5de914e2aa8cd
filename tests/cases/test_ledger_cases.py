"""Public bug reports as tiny traces: the ledger that comes out, by arithmetic. Times in the texts are µs."""

import itertools

import pytest

US = 1_000
LATENCY = ("launch_call", "delivery", "turnaround")
POSITION = ("leading", "between", "trailing")


def only_device(document):
    (device,) = document["devices"]
    return device


def codes(document):
    return {finding["code"] for finding in document["completeness"]["findings"]}


def finding(document, code):
    (found,) = [one for one in document["completeness"]["findings"] if one["code"] == code]
    return found


def totals(device, *, ops, op_time, busy, span, gaps):
    """Compare the totals of a device, in µs."""
    assert device["totals"] == {
        "device_ops": ops,
        "op_time_ns": round(op_time * US),
        "busy_ns": round(busy * US),
        "span_ns": round(span * US),
        "idle_ns": round(span * US) - round(busy * US),
        "gaps": gaps,
    }


def accounts(device, window, **expected):
    """Compare the accounts of the ledger, in µs; those not named are 0."""
    ledger = device["ledger"]
    assert ledger["window_ns"] == round(window * US)
    assert sum(ledger["accounts"].values()) == round(window * US)
    assert {name: time for name, time in ledger["accounts"].items() if time} == {
        name: round(time * US) for name, time in expected.items()
    }


def parts(found, names, *expected):
    """Compare the parts of an account, in µs."""
    assert found == {name: round(time * US) for name, time in zip(names, expected, strict=True)}


def causes(device, **expected):
    """Compare the causes of host time, in µs; those not named are 0."""
    by = {name: time for name, time in device["ledger"]["idle_host_by"].items() if time}
    assert by == {name: round(time * US) for name, time in expected.items()}


class TestGraphReplaysUnderRecorded:
    """B01: 8 steps of 10 000, each a graph launch and an eager softmax of 100; 2 replays of 9 200 are recorded.

    Recorded busy 2 x 9 200 + 8 x 100 = 19 200. Steps 2 and 6 hold 5 + 1 ops and 9 300 of busy, the others one op.
    """

    NAME = "graph-replays-under-recorded.json"

    def test_verdict_counts_the_missing_replays(self, document):
        found = document("reconcile", self.NAME)
        assert found["completeness"]["verdict"] == "unreliable"
        assert finding(found, "graph_replay_uneven")["count"] == 6
        assert finding(found, "launch_without_op")["count"] == 6

    def test_steps_show_what_was_recorded(self, document):
        device = only_device(document("reconcile", self.NAME))
        assert device["totals"]["device_ops"] == 18
        assert device["totals"]["op_time_ns"] == device["totals"]["busy_ns"] == 19_200 * US
        items = device["steps"]["items"]
        assert device["steps"]["source"] == "sglang"
        assert {(item["batch"], item["kind"]) for item in items} == {(64, "decode")}
        busy = [100, 100, 9300, 100, 100, 100, 9300, 100]
        assert [item["own_busy_ns"] for item in items] == [one * US for one in busy]
        assert [item["device_ops"] for item in items] == [1, 1, 6, 1, 1, 1, 6, 1]
        assert items[2]["window_ns"] == 10_000 * US
        assert items[2]["accounts"]["compute"] == 9_300 * US

    def test_strict_refuses(self, run):
        code, out, _ = run("reconcile", self.NAME, "--strict", "--format", "json")
        assert code == 3
        assert '"unreliable"' in out

    def test_kernels_are_still_ranked(self, document):
        """Gemm 2 x (3 000 + 2 400), attention 2 x 2 600, silu 2 x 700, norm 2 x 500, softmax 8 x 100."""
        rows = only_device(document("kernels", self.NAME))["kernels"]
        assert [(row["launches"], row["op_time_ns"] // US) for row in rows] == [
            (4, 10_800),
            (2, 5_200),
            (2, 1_400),
            (2, 1_000),
            (8, 800),
        ]


class TestStepOf570msWithKernelsOf200ms:
    """B02: one step of 560 000; 20 kernels of 10 000; gaps of 4 000 between them.

    Before the first kernel: schedule 90 000, prepare 60 000, latency 100 (call 80, delivery 20). Each gap: 3 900 until
    the next launch, then 80 and 20. After the last kernel 133 900 with nothing queued.
    """

    NAME = "step-570ms-kernels-200ms.json"

    def test_ledger(self, document):
        device = only_device(document("reconcile", self.NAME))
        totals(device, ops=20, op_time=200_000, busy=200_000, span=276_000, gaps=19)
        accounts(device, 560_000, compute=200_000, idle_latency=20 * 100, idle_host=150_000 + 19 * 3_900 + 133_900)
        parts(device["ledger"]["idle_latency_by"], LATENCY, 20 * 80, 20 * 20, 0)
        parts(device["ledger"]["idle_by_position"], POSITION, 150_100, 19 * 4_000, 133_900)
        assert device["ledger"]["wall_ns"] is None
        assert device["step"]["residual_ns"] is None

    def test_causes_of_host_time(self, document):
        """The last 30 of every host part lie in the op that launches; the sync outlasts the last kernel by 10."""
        device = only_device(document("reconcile", self.NAME))
        causes(
            device,
            **{
                "python:scheduler.py:schedule": 90_000,
                "python:gpu_model_runner.py:_prepare_inputs": 59_970,
                "python:gpu_model_runner.py:_model_forward": 19 * 3_870,
                "python:sampler.py:forward": 40_000,
                "python:output_processor.py:process_outputs": 90_000,
            },
            framework=20 * 30,
            sync=10,
            unrecorded=3_890,
        )
        assert device["host"]["scheduler_ns"] == device["host"]["scheduler_exposed_ns"] == 90_000 * US
        assert device["host"]["sync_ns"] == 9_060 * US

    @pytest.mark.parametrize(
        ("flags", "wall", "residual"),
        [
            (["--wall-ms", "570"], 570_000, 10_000),
            (["--tokens-per-second", "112.280702", "--concurrency", "64"], 570_000, 10_000),
            (["--wall-ms", "500"], 500_000, -60_000),
        ],
    )
    def test_residual_completes_the_wall(self, document, flags, wall, residual):
        step = only_device(document("reconcile", self.NAME, *flags))["step"]
        assert step["wall_ns"] == pytest.approx(wall * US, abs=US)
        assert step["residual_ns"] == pytest.approx(residual * US, abs=US)

    def test_a_shorter_wall_is_dilation(self, document):
        found = document("reconcile", self.NAME, "--wall-ms", "500")
        assert only_device(found)["step"]["dilation"] == pytest.approx(1.12)
        assert finding(found, "profiler_dilation")["severity"] == "warning"
        assert "wall_below_busy" not in codes(found)

    def test_a_wall_below_busy_is_not_clamped(self, document):
        found = document("reconcile", self.NAME, "--wall-ms", "150")
        step = only_device(found)["step"]
        assert (step["busy_ns"], step["residual_ns"]) == (200_000 * US, -410_000 * US)
        assert "wall_below_busy" in codes(found)


class TestAnnotationsOnDeviceTracks:
    """B04: gemm 1000-1100, silu 1150-1200, all-reduce 1200-1500; three annotation bars on the same tracks.

    Step 950 to 1550. Launches at 980 and 1120 take 4 each: latency 20 + 30, host 30 + 20 and 50 behind the last kernel.
    """

    NAME = "annotations-on-device-tracks.json"

    def test_ledger(self, document):
        device = only_device(document("reconcile", self.NAME))
        totals(device, ops=3, op_time=450, busy=450, span=500, gaps=1)
        accounts(device, 600, compute=150, exposed_comm=300, idle_latency=50, idle_host=100)
        parts(device["ledger"]["idle_latency_by"], LATENCY, 8, 42, 0)
        parts(device["ledger"]["idle_by_position"], POSITION, 50, 50, 50)
        causes(device, framework=20, unrecorded=80)

    def test_no_bar_is_a_kernel(self, document):
        rows = only_device(document("kernels", self.NAME))["kernels"]
        assert [(row["kind"], row["op_time_ns"]) for row in rows] == [
            ("comm", 300 * US),
            ("compute", 100 * US),
            ("compute", 50 * US),
        ]
        assert rows[0]["share_of_op_time_frac"] == pytest.approx(2 / 3)


class TestDurationOverrunsItsQueue:
    """B05: gemm 0+90, fmha 100+1 600 000, gemm 500+90.027, norm 590+10, fmha 610+380, gemm 1000+90 on one queue."""

    def test_a_damaged_end_is_cut_at_the_next_start(self, document):
        """The fmha is cut to 500 - 100 = 400: busy 90 + 400 + 100 + 380 + 90, idle 90-100, 600-610, 990-1000."""
        found = document("reconcile", "duration-overruns-queue.json")
        totals(only_device(found), ops=6, op_time=1060.027, busy=1060, span=1090, gaps=3)
        assert found["completeness"]["verdict"] == "unreliable"
        assert finding(found, "impossible_overlap")["count"] == 1
        assert finding(found, "impossible_overlap")["impact_ns"] == (1_600_000 - 400) * US

    def test_kernels_hold_what_remains(self, document):
        rows = only_device(document("kernels", "duration-overruns-queue.json"))["kernels"]
        times = {row["name"].split("_")[0]: (row["launches"], row["op_time_ns"]) for row in rows}
        assert times["Cijk"] == (3, 270_027)
        assert max(time for _, time in times.values()) == (400 + 380) * US

    def test_dependent_launch_is_left_alone(self, document):
        """Gemm 0+20, norm 17.5+4.5, gemm 21+20: busy 41, op time 44.5; first launch 12 before, 4 in the call."""
        found = document("reconcile", "dependent-launch-overlap.json")
        device = only_device(found)
        totals(device, ops=3, op_time=44.5, busy=41, span=41, gaps=0)
        accounts(device, 53, compute=41, idle_latency=12)
        parts(device["ledger"]["idle_latency_by"], LATENCY, 4, 8, 0)
        assert "impossible_overlap" not in codes(found)


class TestKernelsRunIntoTheNextStep:
    """B07: host steps 0-1000, 1000-2000, 2000-9500; kernels of 1 500, two a step, from 500 on; one before, -100-500.

    Windows: max(0, min(500, 500)) = 500, max(1000, 3500), max(2000, 6500), end max(9500, 9500): 3 000 each, no idle.
    """

    NAME = "kernels-run-into-next-step.json"

    def test_windows_are_device_periods(self, document):
        found = document("reconcile", self.NAME)
        device = only_device(found)
        totals(device, ops=7, op_time=9_600, busy=9_600, span=9_600, gaps=0)
        items = device["steps"]["items"]
        assert [item["name"] for item in items] == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]
        for item in items:
            assert item["device_ops"] == 2
            assert item["window_ns"] == item["own_busy_ns"] == item["accounts"]["compute"] == 3_000 * US
        assert [b["start_ns"] - a["start_ns"] for a, b in itertools.pairwise(items)] == [3_000 * US] * 2
        assert finding(found, "op_without_launch")["count"] == 1
        assert codes(found).isdisjoint({"launch_without_op", "clock_skew"})

    def test_wall_of_a_period_leaves_no_residual(self, document):
        step = only_device(document("reconcile", self.NAME, "--wall-ms", "3"))["step"]
        assert (step["residual_ns"], step["dilation"]) == (0, None)


class TestSyncAndOverheadRows:
    """B20: kernels 0-100 and 900-1000; waits and profiler rows on the device's tracks are no device work."""

    def test_a_recorded_wait_is_latency(self, document):
        """Second launch at 110: 10 host, 4 in the call, 786 after it; the window begins 10 before with the first."""
        found = document("reconcile", "sync-and-overhead-rows.json")
        device = only_device(found)
        totals(device, ops=2, op_time=200, busy=200, span=1000, gaps=1)
        accounts(device, 1010, compute=200, idle_latency=800, idle_host=10)
        parts(device["ledger"]["idle_latency_by"], LATENCY, 8, 792, 0)
        causes(device, unrecorded=10)
        assert device["host"]["sync_ns"] == 850 * US
        assert codes(found).isdisjoint({"idle_while_pending", "launch_without_op", "op_without_launch"})

    def test_a_late_launch_is_the_hosts(self, document):
        """Second launch at 890: 790 host, of which 4 in the sync call and 410 in rows of the profiler."""
        device = only_device(document("reconcile", "sync-on-own-row.json"))
        totals(device, ops=2, op_time=200, busy=200, span=1000, gaps=1)
        accounts(device, 1010, compute=200, idle_latency=20, idle_host=790)
        parts(device["ledger"]["idle_latency_by"], LATENCY, 8, 12, 0)
        causes(device, sync=4, profiler=410, unrecorded=376)
        assert device["host"]["sync_ns"] == 44 * US

    def test_no_wait_is_a_kernel(self, document):
        assert len(only_device(document("kernels", "sync-and-overhead-rows.json"))["kernels"]) == 2


class TestWaitingCollective:
    """B14: two ranks, two all-reduces; rank 1 arrives 212 200 late, so rank 0 waits inside the first kernel."""

    def test_ledgers_of_both_ranks(self, document):
        """Gaps of rank 0: 50 + 234.585 + 20 before the first; three launches of 4 and 16: latency 60."""
        found = document("reconcile", "waiting-collective")
        first, second = found["devices"]
        totals(first, ops=3, op_time=216_755.415, busy=216_755.415, span=216_990, gaps=2)
        accounts(first, 217_010, compute=850, exposed_comm=215_905.415, idle_latency=60, idle_host=194.585)
        parts(first["ledger"]["idle_latency_by"], LATENCY, 12, 48, 0)
        totals(second, ops=3, op_time=4_439.624, busy=4_439.624, span=216_990, gaps=2)
        accounts(second, 217_010, compute=850, exposed_comm=3_589.624, idle_latency=60, idle_host=212_510.376)
        assert second["host"]["scheduler_ns"] == second["host"]["scheduler_exposed_ns"] == 212_200 * US
        assert second["ledger"]["idle_host_by"]["python:scheduler.py:get_next_batch_to_run"] == 212_200 * US

    def test_the_waiting_rank_and_the_late_one_are_named(self, document):
        found = document("reconcile", "waiting-collective")
        spinning = finding(found, "spinning_collective")
        assert spinning["rank"] == 0
        assert 212_310_791 <= spinning["impact_ns"] <= 212_315_791
        assert finding(found, "rank_skew")["rank"] == 1
        assert codes(found).isdisjoint({"rank_clock_offset", "rank_missing"})

    def test_one_rank_alone_still_shows_the_waiting(self, document):
        found = document("reconcile", "waiting-collective/rank0.json")
        assert "spinning_collective" in codes(found)
        assert "rank_skew" not in codes(found)


class TestClocksOfRanks:
    """B15: an all-reduce of 4 ranks; rank 3 begins 1 680 after it ended on the others: its clock is off."""

    def test_the_wrong_clock_is_named(self, document):
        found = document("reconcile", "clocks-of-four-ranks")
        assert [device["totals"]["busy_ns"] for device in found["devices"]] == [400 * US, 350 * US, 300 * US, 320 * US]
        offset = finding(found, "rank_clock_offset")
        assert offset["rank"] == 3
        assert 1_680 * US <= offset["impact_ns"] <= 2_080 * US
        assert codes(found).isdisjoint({"rank_missing", "clock_skew"})

    def test_missing_ranks_are_told(self, document):
        found = document("reconcile", "two-of-four-ranks")
        assert len(found["devices"]) == 2
        assert "rank_missing" in codes(found)
        assert "rank_clock_offset" not in codes(found)

from types import SimpleNamespace

import pytest
from comparisons import BASELINE, REGRESSED, RERUN, trace_bytes

import traceaudit.capture
from traceaudit.pytest_plugin import StepCheck, pytest_addoption, traceaudit_check

FIRST = next(iter(BASELINE))


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Return a function that makes a `StepCheck` whose recordings have the given times."""
    monkeypatch.chdir(tmp_path)

    def make(kernels, *, save=False, fail=False):
        def record(step, *, path, **_):
            step()
            path.write_bytes(trace_bytes(kernels))

        monkeypatch.setattr(traceaudit.capture, "record", record)
        return StepCheck(tmp_path, "test_decode", save, fail)

    return make


def step():
    pass


def test_a_stored_baseline_is_what_later_runs_are_held_against(check):
    assert str(check(BASELINE, save=True)(step, baseline="decode").verdict) == "pass"
    assert str(check(RERUN)(step, baseline="decode").verdict) == "pass"
    with pytest.raises(pytest.fail.Exception, match=FIRST):
        check(REGRESSED)(step, baseline="decode")


def test_a_budget_alone_looks_at_its_bounds(check, tmp_path):
    budget = tmp_path / "b.toml"
    budget.write_text(f"[[kernel]]\nmatch = '{FIRST}'\nmax_us = 500\n")
    assert str(check(BASELINE)(step, budget=str(budget)).verdict) == "pass"
    budget.write_text(f"[[kernel]]\nmatch = '{FIRST}'\nmax_us = 200\n")
    with pytest.raises(pytest.fail.Exception, match=r"at most\s+200 is allowed"):
        check(BASELINE)(step, budget=str(budget))


def test_what_cannot_be_decided_skips_or_fails(check, tmp_path):
    budget = tmp_path / "b.toml"
    budget.write_text("[gate]\nmin_runs = 3\n")
    with pytest.raises(pytest.skip.Exception, match="cannot decide"):
        check(BASELINE)(step, budget=str(budget))
    with pytest.raises(pytest.fail.Exception):
        check(BASELINE, fail=True)(step, budget=str(budget))


def test_something_to_hold_it_against_is_needed(check):
    with pytest.raises(ValueError, match="baseline, a budget, or both"):
        check(BASELINE)(step)


def request_of(setting):
    """Return a stand-in for a test's request where the plugin's setting has a value."""
    return SimpleNamespace(config=SimpleNamespace(getini=lambda _: setting))


def test_without_a_gpu_the_test_is_skipped_with_the_reason(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(pytest.skip.Exception, match="no GPU"):
        traceaudit_check.__wrapped__(request_of("skip"), tmp_path)


def test_without_torch_the_test_is_skipped_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(pytest.skip.Exception, match="torch is not installed"):
        traceaudit_check.__wrapped__(request_of("skip"), tmp_path)


def test_a_misspelt_setting_fails_where_there_is_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(pytest.UsageError, match="traceaudit_inconclusive must be one of skip, fail, found 'faill'"):
        traceaudit_check.__wrapped__(request_of("faill"), tmp_path)


def test_the_plugin_adds_its_options():
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    assert parser.parse(["--traceaudit-save-baselines"]).traceaudit_save_baselines is True

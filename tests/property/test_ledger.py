"""The ledger of random traces against the slow reference."""

from hypothesis import given
from reference import assert_same_ledger, reference_of
from stepped import stepped_traces
from views import audit_of, text_of


@given(stepped_traces())
def test_ledger_is_that_of_the_slow_reference(trace):
    assert_same_ledger(audit_of(trace), reference_of(text_of(trace)))

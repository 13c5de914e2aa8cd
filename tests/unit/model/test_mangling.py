import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.model.mangling import demangled


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("_Z9my_kernelIfEvPT_", "my_kernel<float>"),
        ("_ZL9my_kernelPf", "my_kernel"),
        ("_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo"),
        ("_ZNSt6vectorIiE3fooEv", "std::vector<int>::foo"),
        ("_ZSt4sortIiEvT_", "std::sort<int>"),
        ("_Z3fooILin5ELb1EN1a1bEEvv", "foo<-5, 1, a::b>"),
        # A value of an enumeration; a pack after an argument; a class of the first name's namespace.
        ("_ZN1a3fooILNS_1eE2EJiNS_1bIfEEEEEvv", "a::foo<e(2), int, b<float>>"),
        # A function as an argument: float silu<float>(float const&).
        ("_ZN1a3fooIfXadL_Z4siluIfET_RKS1_EEEEvv", "a::foo<float, silu<float>, _, _>"),
        # Cut short, as writers do with long names.
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm", "ck_tile::kentry<1, Rmsnorm2dFwd<Rmsnorm"),
        ("_Z", "_Z"),
        ("_Zebra", "_Zebra"),
        ("_ZN", "_ZN"),
        ("plain", "plain"),
    ],
)
def test_the_function_and_its_arguments(name, function):
    assert demangled(name) == function


@given(st.text("NIJLEXFS_TZD019abfiPRK", max_size=60))
def test_any_text_is_read(rest):
    assert demangled("_Z" + rest)

"""Packaged models: their fields give the number of weights that their makers state."""

import pytest

from traceaudit.errors import UsageError
from traceaudit.model.llm.families import architecture
from traceaudit.model.llm.presets import preset, presets


@pytest.mark.parametrize("key", [item.key for item in presets()])
def test_the_fields_give_the_stated_number_of_weights(key):
    packaged = preset(key)
    model = architecture(packaged.config, name=packaged.name)
    assert model.parameters().total == pytest.approx(packaged.parameters, rel=0.01)
    assert packaged.source
    assert not [note for note in model.notes if "not on the list" in note]


@pytest.mark.parametrize(
    ("key", "total", "active"),
    [
        ("llama-3-8b", 8.030, 7.505),
        ("deepseek-v3", 671.0, 36.6),
        ("deepseek-v4-flash", 284.3, 13.27),
        ("gpt-oss-120b", 116.8, 5.13),
        ("qwen3-235b-a22b", 235.1, 21.6),
        ("mixtral-8x7b", 46.7, 12.75),
    ],
)
def test_total_and_active_in_billions(key, total, active):
    """Active without the embedding's row: V3's 37.55 less 129 280 x 7168 = 0.93 is 36.6."""
    count = architecture(preset(key).config, name=key).parameters()
    assert count.total / 1e9 == pytest.approx(total, rel=1e-3)
    assert count.active / 1e9 == pytest.approx(active, rel=2e-3)


def test_aliases_and_spelling():
    assert preset("DeepSeek_R1").key == "deepseek-v3"
    assert preset("meta-llama/Llama-3.1-8B").key == "llama-3-8b"


def test_an_unknown_name_suggests_near_ones():
    with pytest.raises(UsageError) as caught:
        preset("deepseek-v5")
    assert "deepseek-v3" in str(caught.value.hint)
    with pytest.raises(UsageError, match="neither a file nor a packaged model") as caught:
        preset("zzzz")
    assert "packaged are" in str(caught.value.hint)

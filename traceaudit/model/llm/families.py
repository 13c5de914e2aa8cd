"""From a Hugging Face ``config.json`` to an architecture, by the names of its fields.

What cannot be recognised is refused. A model with experts that is read as dense, or a state-space layer read as
attention, gives a floor that is wrong by a factor, and nothing in the answer would show it.
"""

import re
from collections.abc import Mapping

from traceaudit.errors import ConfigError
from traceaudit.model.llm.architecture import Architecture, Layer
from traceaudit.model.llm.fields import Fields
from traceaudit.model.llm.layers import PLAIN, attention_layers, ffn_layers, one_expert_layer
from traceaudit.model.llm.quantconfig import formats_of

__all__ = ["architecture"]

MOST_LAYERS = 10_000

GATED = frozenset(
    {
        "baichuan",
        "cohere",
        "cohere2",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "deepseek_v4",
        "dots1",
        "ernie4_5",
        "ernie4_5_moe",
        "exaone4",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3_text",
        "glm",
        "glm4",
        "glm4_moe",
        "glm_moe_dsa",
        "gpt_oss",
        "granite",
        "hunyuan_v1_dense",
        "hunyuan_v1_moe",
        "internlm2",
        "internlm3",
        "kimi_k2",
        "llama",
        "llama4",
        "llama4_text",
        "minimax_m2",
        "ministral",
        "mistral",
        "mistral3",
        "mixtral",
        "olmo2",
        "olmo3",
        "phi3",
        "qwen2",
        "qwen2_5_vl_text",
        "qwen2_moe",
        "qwen2_vl_text",
        "qwen3",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
        "qwen3_5_text",
        "qwen3_moe",
        "qwen3_next",
        "qwen3_vl_moe_text",
        "qwen3_vl_text",
        "seed_oss",
        "smollm3",
        "yi",
    }
)
"""Families known to have gate, up and down matrices in every feed-forward layer."""

FOREIGN = re.compile(
    r"mamba|ssm|rwkv|kda|lightning|hybrid_override|attn_type_list|layers_block_type|conv_L|linear_attn_config|"
    r"sparse_config|zero_expert|altup|laurel|hidden_size_per_layer|block_configs|num_kv_shared_layers"
)
"""Fields of mixers, or of layers unlike each other, that are not read here."""

STRUCTURE = re.compile(r"expert|moe|lora_rank|compress|linear_|index_|hyper|mixer")
HARMLESS = re.compile(
    r"aux|loss|prob|scal|group|score|logits|ep_size|capacity|jitter|bias|router|dtype|method|topk_|drop"
)


def architecture(config: Mapping[str, object], *, name: str, where: str | None = None) -> Architecture:
    """Read an architecture from a model's configuration.

    Parameters
    ----------
    config
        The content of ``config.json``; language models nested in it are found.
    name
        What to call the model.
    where
        The file, for messages.

    Raises
    ------
    ConfigError
        If a field is missing or senseless, or the model is of a kind that is not known.
    """
    fields = Fields.of(config, where or name)
    family = fields.text("model_type") or "unknown"
    notes: list[str] = []
    _refuse_foreign(fields, family)
    hidden, vocab = fields.integer("hidden_size"), fields.integer("vocab_size")
    count = fields.integer("num_hidden_layers")
    if count > MOST_LAYERS:
        raise ConfigError(f"{count:,} layers are no model", where=fields.where)
    attention = attention_layers(fields, family, count, notes)
    ffn = ffn_layers(fields, family, count, notes)
    _judge_unknown(fields, family, notes)
    hyper = _hyper_elements(fields, hidden)
    layers = tuple(Layer(mixer, net, 2 * hidden, hyper) for mixer, net in zip(attention, ffn, strict=True))
    if any(layer.ffn != layers[-1].ffn for layer in layers):
        notes.append("layers differ: " + _kinds(layers))
    return Architecture(
        name=name,
        family=family,
        hidden=hidden,
        vocab=vocab,
        layers=layers,
        tied=fields.flag("tie_word_embeddings", default=family.startswith("gemma")),
        formats=formats_of(fields, layers),
        draft=_draft(fields, layers, hidden, hyper),
        notes=tuple(notes),
    )


def _refuse_foreign(fields: Fields, family: str) -> None:
    if fields.flag("is_encoder_decoder", default=False):
        raise ConfigError(f"{family!r} is an encoder-decoder model, which has no decoder-only step", where=fields.where)
    foreign = [key for key, value in fields.values.items() if FOREIGN.search(key) and value not in (None, False, [])]
    foreign = [key for key in foreign if key != "mamba_ssm_dtype"]
    if foreign:
        raise ConfigError(
            f"{family!r} has layers that are not modelled: {', '.join(sorted(foreign))}",
            where=fields.where,
            hint="--params N --bits B gives the napkin form",
        )


def _judge_unknown(fields: Fields, family: str, notes: list[str]) -> None:
    """Accept a family that is not on the list only where its fields leave no doubt."""
    if family in GATED or family in PLAIN:
        return
    doubtful = [key for key in fields.unread() if STRUCTURE.search(key) and not HARMLESS.search(key)]
    if doubtful:
        raise ConfigError(
            f"model_type {family!r} is not known, and {', '.join(doubtful)} may change what a step reads",
            where=fields.where,
            hint="--params N --bits B gives the napkin form",
        )
    act = fields.text("hidden_act", "hidden_activation", "activation_function") or "silu"
    if act not in {"silu", "swiglu", "swish"}:
        raise ConfigError(
            f"model_type {family!r} is not known, and its activation {act!r} does not tell whether there is a gate",
            where=fields.where,
            hint="--params N --bits B gives the napkin form",
        )
    notes.append(f"model_type {family!r} is not on the list of families: read by the names of its fields")


def _hyper_elements(fields: Fields, hidden: int) -> int:
    streams = fields.optional("hc_mult")
    if not streams or streams == 1:
        return 0
    return 2 * streams * hidden * (2 + streams) * streams  # two projections of all streams to (2 + n) n numbers


def _draft(fields: Fields, layers: tuple[Layer, ...], hidden: int, hyper: int) -> Layer | None:
    """Return the layer that drafts tokens: like the last one, with experts where the model has them."""
    if not fields.optional("num_nextn_predict_layers", "mtp_num_hidden_layers"):
        return None
    return Layer(layers[-1].attention, one_expert_layer(layers), 2 * hidden, hyper)


def _kinds(layers: tuple[Layer, ...]) -> str:
    names = [type(layer.ffn).__name__.lower() for layer in layers]
    return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))

"""Which attention and which feed-forward net each layer of a configuration has."""

from traceaudit.errors import ConfigError
from traceaudit.model.llm.architecture import Layer
from traceaudit.model.llm.attention import Attention, GroupedQuery
from traceaudit.model.llm.compressed import Compressed
from traceaudit.model.llm.ffn import Dense, Experts
from traceaudit.model.llm.fields import Fields
from traceaudit.model.llm.latent import Indexer, Latent
from traceaudit.model.llm.linear import DeltaNet

__all__ = ["PLAIN", "attention_layers", "ffn_layers", "one_expert_layer"]

COUNTS = ("n_routed_experts", "num_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
CHOSEN = ("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k")
EXPERT_WIDTHS = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
SHARED_COUNTS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
WIDE_EXPERTS = {"mixtral", "gpt_oss", "minimax_m2", "llama4", "llama4_text"}  # width is intermediate_size
SHARED_IMPLIED = {"llama4", "llama4_text"}
GATED_QUERIES = {"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"}
PLAIN = {"gpt_neox", "phi", "starcoder2", "nemotron"}  # up and down matrices only
V4_RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
V4_INDEXED_RATIO = 4  # only these layers have so many entries that an indexer picks among them
CHUNKED_EVERY, FULL_EVERY_GEMMA = 4, 6


def attention_layers(fields: Fields, family: str, count: int, notes: list[str]) -> list[Attention]:
    """Return the attention of each layer.

    Raises
    ------
    ConfigError
        If a field is missing, or a layer type is not known.
    """
    types = fields.strings("layer_types", count)
    if fields.has("compress_ratios", "compress_rates", "o_lora_rank") or (
        types and set(types) & set(V4_RATIOS) - {"sliding_attention"}
    ):
        return _compressed(fields, count, types)
    if fields.has("kv_lora_rank"):
        _refuse_types(fields, types, {"full_attention"})
        return [_latent(fields)] * count
    full = _grouped(fields, family)
    types = types or _types_from_rules(fields, family, count)
    _refuse_types(fields, types, {"full_attention", "sliding_attention", "chunked_attention", "linear_attention"})
    made: dict[str, Attention] = {"full_attention": full}
    if "sliding_attention" in types:
        made["sliding_attention"] = _grouped(fields, family, window=fields.integer("sliding_window"))
    if "chunked_attention" in types:
        made["chunked_attention"] = _grouped(fields, family, chunk=fields.integer("attention_chunk_size"))
    if "linear_attention" in types:
        made["linear_attention"] = _delta_net(fields)
    if len(made) > 1:
        notes.append("attention: " + ", ".join(f"{types.count(kind)} x {kind}" for kind in made if kind in types))
    return [made[kind] for kind in types]


def ffn_layers(fields: Fields, family: str, count: int, notes: list[str]) -> list[Dense | Experts]:
    """Return the feed-forward net of each layer.

    Raises
    ------
    ConfigError
        If a field is missing, or there are signs of experts and no number of them.
    """
    experts = _experts(fields, family, notes)
    if experts is None:
        return [_dense(fields, family)] * count
    sparse = [_is_sparse(fields, index) for index in range(count)]
    if all(sparse):
        return [experts] * count
    dense = _dense(fields, family)
    return [experts if is_sparse else dense for is_sparse in sparse]


def one_expert_layer(layers: tuple[Layer, ...]) -> Dense | Experts:
    """Return the feed-forward net of a layer with experts, or of the last layer where none has."""
    return next((layer.ffn for layer in layers if isinstance(layer.ffn, Experts)), layers[-1].ffn)


def _grouped(fields: Fields, family: str, *, window: int | None = None, chunk: int | None = None) -> GroupedQuery:
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    head_dim = fields.optional("head_dim")
    if head_dim is None:
        head_dim, rest = divmod(hidden, heads)
        if rest:
            raise ConfigError(f"no head_dim, and {heads} heads do not divide hidden_size {hidden}", where=fields.where)
    return GroupedQuery(
        hidden=hidden,
        heads=heads,
        kv_heads=fields.optional("num_key_value_heads", "num_kv_heads") or heads,
        head_dim=head_dim,
        value_dim=fields.optional("v_head_dim") or head_dim,
        window=window,
        chunk=chunk,
        gated=fields.flag("attn_output_gate", default=family in GATED_QUERIES),
    )


def _types_from_rules(fields: Fields, family: str, count: int) -> list[str]:
    """Name each layer's type where the configuration has rules and no list."""
    every = fields.optional("full_attention_interval")
    if every:
        return ["full_attention" if (index + 1) % every == 0 else "linear_attention" for index in range(count)]
    if fields.has("attention_chunk_size"):
        rotary = fields.integers("no_rope_layers") or []  # 1: rotary, hence chunked; 0: none, hence full
        every = fields.optional("no_rope_layer_interval") or CHUNKED_EVERY
        local = rotary or [int((index + 1) % every != 0) for index in range(count)]
        return ["chunked_attention" if flag else "full_attention" for flag in local[:count]]
    window = fields.optional("sliding_window")
    if not window or not fields.flag("use_sliding_window", default=not family.startswith("qwen")):
        return ["full_attention"] * count
    every = fields.optional("sliding_window_pattern", "_sliding_window_pattern")
    if every or family.startswith("gemma3"):
        every = every or FULL_EVERY_GEMMA
        return ["full_attention" if (index + 1) % every == 0 else "sliding_attention" for index in range(count)]
    if family in {"gemma2", "gpt_oss"}:
        return ["sliding_attention" if index % 2 == 0 else "full_attention" for index in range(count)]
    full = fields.optional("max_window_layers") or 0  # Qwen2: the first so many layers see everything
    return ["full_attention" if index < full else "sliding_attention" for index in range(count)]


def _refuse_types(fields: Fields, types: list[str] | None, known: set[str]) -> None:
    foreign = sorted(set(types or ()) - known)
    if foreign:
        raise ConfigError(f"layer_types holds what is not modelled here: {', '.join(foreign)}", where=fields.where)


def _latent(fields: Fields) -> Latent:
    indexer = None
    if fields.has("index_topk"):
        indexer = Indexer(
            fields.integer("index_n_heads"), fields.integer("index_head_dim"), fields.integer("index_topk")
        )
    fields.optional("num_key_value_heads")  # says nothing of a latent cache
    return Latent(
        hidden=fields.integer("hidden_size"),
        heads=fields.integer("num_attention_heads"),
        q_rank=fields.optional("q_lora_rank"),
        kv_rank=fields.integer("kv_lora_rank"),
        rope_dim=fields.integer("qk_rope_head_dim"),
        nope_dim=fields.integer("qk_nope_head_dim"),
        value_dim=fields.integer("v_head_dim"),
        indexer=indexer,
    )


def _compressed(fields: Fields, count: int, types: list[str] | None) -> list[Attention]:
    if types:
        _refuse_types(fields, types, set(V4_RATIOS))
        rates = Fields(fields.mapping("compress_rates") or {}, fields.where)
        stated = {kind: rates.optional(kind) for kind in set(types)}
        ratios = [V4_RATIOS[kind] if stated[kind] is None else stated[kind] or 0 for kind in types]
    else:
        listed = fields.integers("compress_ratios", count)
        if listed is None:
            raise ConfigError("neither layer_types nor compress_ratios", where=fields.where)
        ratios = listed
    made = {ratio: _compressed_layer(fields, ratio) for ratio in dict.fromkeys(ratios)}
    return [made[ratio] for ratio in ratios]


def _compressed_layer(fields: Fields, ratio: int) -> Compressed:
    indexer = None
    if ratio == V4_INDEXED_RATIO:
        indexer = Indexer(
            fields.integer("index_n_heads"), fields.integer("index_head_dim"), fields.integer("index_topk")
        )
    if fields.integer("num_key_value_heads") != 1:
        raise ConfigError("compressed attention with more than one KV head is not known", where=fields.where)
    return Compressed(
        hidden=fields.integer("hidden_size"),
        heads=fields.integer("num_attention_heads"),
        head_dim=fields.integer("head_dim"),
        rope_dim=fields.optional("qk_rope_head_dim") or 64,
        q_rank=fields.integer("q_lora_rank"),
        o_rank=fields.integer("o_lora_rank"),
        o_groups=fields.integer("o_groups"),
        window=fields.integer("sliding_window"),
        ratio=ratio,
        indexer=indexer,
    )


def _delta_net(fields: Fields) -> DeltaNet:
    return DeltaNet(
        hidden=fields.integer("hidden_size"),
        key_heads=fields.integer("linear_num_key_heads"),
        value_heads=fields.integer("linear_num_value_heads"),
        key_dim=fields.integer("linear_key_head_dim"),
        value_dim=fields.integer("linear_value_head_dim"),
        conv=fields.integer("linear_conv_kernel_dim"),
    )


def _dense(fields: Fields, family: str) -> Dense:
    width = fields.integer("intermediate_size_mlp", "intermediate_size")
    return Dense(fields.integer("hidden_size"), width, matrices=2 if family in PLAIN else 3)


def _experts(fields: Fields, family: str, notes: list[str]) -> Experts | None:
    count, per_token = fields.optional(*COUNTS), fields.optional(*CHOSEN)
    width = fields.optional(*EXPERT_WIDTHS)
    if not count:
        signs = [name for name in (*CHOSEN, *EXPERT_WIDTHS, *SHARED_COUNTS) if fields.has(name)]
        if signs and count is None:
            raise ConfigError(
                f"{', '.join(signs)} without a number of experts: this is no dense model",
                where=fields.where,
                hint=f"the number is looked for as {', '.join(COUNTS)}",
            )
        return None
    if per_token is None:
        raise ConfigError(f"{count} experts, and none of {', '.join(CHOSEN)}", where=fields.where)
    if not 1 <= per_token <= count:
        raise ConfigError(f"{per_token} of {count} experts cannot be chosen", where=fields.where)
    if width is None:
        width = fields.integer("intermediate_size")
        if family not in WIDE_EXPERTS:
            notes.append("the width of an expert is taken from intermediate_size")
    return Experts(fields.integer("hidden_size"), count, per_token, width, _shared_width(fields, family, width))


def _shared_width(fields: Fields, family: str, width: int) -> int:
    alone = fields.optional("shared_expert_intermediate_size", "shared_intermediate_size")
    if alone is not None:
        return alone
    shared = fields.optional(*SHARED_COUNTS)
    return width * (shared if shared is not None else int(family in SHARED_IMPLIED))


def _is_sparse(fields: Fields, index: int) -> bool:
    """Return whether a layer has experts, by whichever rule the configuration holds."""
    kinds = fields.values.get("mlp_layer_types")
    if isinstance(kinds, list) and index < len(kinds):
        return str(kinds[index]) != "dense"
    listed = fields.integers("moe_layers")
    if listed is not None:
        return index in listed
    if index < (fields.optional("first_k_dense_replace", "moe_layer_start_index") or 0):
        return False
    if index in (fields.integers("mlp_only_layers") or ()):
        return False
    frequency = fields.values.get("moe_layer_freq")
    if isinstance(frequency, list):
        return index < len(frequency) and bool(frequency[index])
    every = fields.optional("moe_layer_freq") or 1
    step = fields.optional("decoder_sparse_step", "interleave_moe_layer_step") or 1
    return index % every == 0 and (index + 1) % step == 0

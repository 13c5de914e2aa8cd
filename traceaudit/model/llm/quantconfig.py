"""From a checkpoint's quantisation config to the format of each part: what is small, and what stays as it was."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from traceaudit.errors import ConfigError
from traceaudit.model.llm.architecture import Layer
from traceaudit.model.llm.components import Component
from traceaudit.model.llm.fields import Fields
from traceaudit.model.llm.modulenames import covers, share_of_layers
from traceaudit.model.llm.quantisation import FORMATS, QUANTISABLE, Format, Formats, KvDtype

__all__ = ["formats_of"]

BASES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "bf16": "bf16", "fp16": "fp16"}
MODELOPT = {
    "FP8": FORMATS["fp8"],
    "FP8_PB_WO": FORMATS["fp8_block128"],
    "FP8_BLOCK_SCALES": FORMATS["fp8_block128"],
    "NVFP4": FORMATS["nvfp4"],
    "MXFP8": FORMATS["mxfp8"],
    "MXFP4": FORMATS["mxfp4"],
    "W4A16_AWQ": FORMATS["int4"],
    "W4A16": FORMATS["int4"],
}
UNQUANTISED_KEYS = (
    "modules_to_not_convert",
    "ignored_layers",
    "ignore",
    "exclude_modules",
    "exclude",
    "llm_int8_skip_modules",
)
BLOCK_128 = [128, 128]
PARTS = tuple(sorted(QUANTISABLE - {Component.DRAFT}))


@dataclass(frozen=True, slots=True)
class _Scheme:
    """A format, the modules it is meant for (None: all linear layers), and those left out."""

    chosen: Format
    targets: tuple[str, ...] | None
    ignored: tuple[str, ...]


def formats_of(fields: Fields, layers: tuple[Layer, ...]) -> Formats:
    """Return the format of each part of a model.

    Raises
    ------
    ConfigError
        If the quantisation method is not known.
    """
    base, notes = _base(fields)
    by_component: dict[Component, Format] = {}
    quant = _quantisation(fields)
    kv_dtype = None
    if quant:
        schemes = _schemes(quant, fields.where)
        by_component = _by_component(schemes, base, layers)
        kv_dtype = _kv_dtype(quant)
        method = quant.get("quant_method") or "modelopt"
        notes.append(f"quantised by {method} to {', '.join(dict.fromkeys(s.chosen.name for s in schemes))}")
        if _truth(quant.get("lm_head")):
            by_component[Component.LM_HEAD] = schemes[0].chosen
    if fields.text("expert_dtype") in {"fp4", "mxfp4", "float4"}:
        by_component[Component.ROUTED_EXPERTS] = FORMATS["mxfp4"]
        notes.append("experts in mxfp4 by expert_dtype")
    if any(layer.hyper_elements for layer in layers):
        by_component |= dict.fromkeys((Component.ROUTER, Component.HYPER_CONNECTIONS), FORMATS["fp32"])
        notes.append("router and stream mixing taken as fp32")
    if by_component:
        notes.append(f"head, router, norms and embedding stay {base.name} unless named")
    return Formats(base, by_component, kv_dtype, tuple(notes))


def _base(fields: Fields) -> tuple[Format, list[str]]:
    name = fields.text("torch_dtype", "dtype")
    if name is None:
        return FORMATS["bf16"], ["no data type in the configuration: weights taken as bf16"]
    try:
        return FORMATS[BASES[name.removeprefix("torch.")]], []
    except KeyError:
        raise ConfigError(
            f"unknown data type {name!r}", where=fields.where, hint="--weights-dtype bf16 sets it"
        ) from None


def _quantisation(fields: Fields) -> Mapping[str, object] | None:
    quant = fields.mapping("quantization_config")
    if quant is None:
        return None
    inner = quant.get("quantization")  # hf_quant_config.json of modelopt
    return {**quant, **inner} if isinstance(inner, Mapping) else quant


def _schemes(quant: Mapping[str, object], where: str) -> list[_Scheme]:
    ignored = tuple(str(item) for key in UNQUANTISED_KEYS for item in _items(quant.get(key)))
    groups = quant.get("config_groups")
    method = str(quant.get("quant_method") or ("modelopt" if quant.get("quant_algo") else "")).lower()
    if isinstance(groups, Mapping) and groups:
        return [_group(group, ignored, where) for group in groups.values() if isinstance(group, Mapping)]
    chosen = _chosen(method, quant)
    if chosen is None:
        raise ConfigError(
            f"quantisation method {method or '?'!r} {quant.get('quant_algo') or ''} is not known".replace("  ", " "),
            where=where,
            hint="--weights-dtype FORMAT says how weights are stored, --checkpoint DIR reads it from the files",
        )
    if method == "mxfp4":  # stated for experts only; all else is listed as not converted, or not listed at all
        return [_Scheme(chosen, ("re:.*experts.*",), ignored)]
    return [_Scheme(chosen, None, ignored)]


def _chosen(method: str, quant: Mapping[str, object]) -> Format | None:
    if method.startswith("modelopt"):
        return MODELOPT.get(str(quant.get("quant_algo")).upper())
    if method in {"fp8", "fbgemm_fp8", "w8a8_fp8", "deepseek_v4_fp8"}:
        return _fp8(quant)
    if method in {"awq", "gptq", "auto-round", "auto_round", "awq_marlin", "gptq_marlin"}:
        return _grouped_integer(quant)
    if method == "bitsandbytes":
        return _bitsandbytes(quant)
    if method == "quark":
        return _quark(quant)
    return {"mxfp4": FORMATS["mxfp4"], "mxfp8": FORMATS["mxfp8"], "w8a8_int8": FORMATS["int8"]}.get(method)


def _fp8(quant: Mapping[str, object]) -> Format:
    block = quant.get("weight_block_size")
    if block is None:
        return FORMATS["fp8"]
    if block == BLOCK_128:
        return FORMATS["fp8_block128_ue8m0" if quant.get("scale_fmt") == "ue8m0" else "fp8_block128"]
    sizes = [size for size in _items(block) if isinstance(size, int) and size > 0]
    area = sizes[0] * sizes[1] if len(sizes) == len(BLOCK_128) else BLOCK_128[0] ** 2
    return Format(f"fp8_block{'x'.join(map(str, sizes))}", 1 + 4 / area, "fp8")


def _grouped_integer(quant: Mapping[str, object]) -> Format | None:
    bits, group = quant.get("bits", quant.get("w_bit")), quant.get("group_size", quant.get("q_group_size", 128))
    if not isinstance(bits, int) or not isinstance(group, int):
        return None
    scales = (2 + bits / 8) / group if group > 0 else 0.0  # a 16-bit scale and a zero of `bits` for each group
    return Format(f"int{bits}_g{group}" if group > 0 else f"int{bits}", bits / 8 + scales, "bf16")


def _bitsandbytes(quant: Mapping[str, object]) -> Format:
    if _truth(quant.get("load_in_8bit")):
        return FORMATS["int8_weight_only"]
    return FORMATS["nf4_double" if _truth(quant.get("bnb_4bit_use_double_quant")) else "nf4"]


def _quark(quant: Mapping[str, object]) -> Format | None:
    whole = quant.get("global_quant_config")
    weight = whole.get("weight") if isinstance(whole, Mapping) else None
    if not isinstance(weight, Mapping):
        return None
    kinds = {"fp8_e4m3": FORMATS["fp8"], "fp4": FORMATS["mxfp4"], "int8": FORMATS["int8"], "uint4": FORMATS["int4"]}
    return kinds.get(str(weight.get("dtype")))


def _group(group: Mapping[str, object], ignored: tuple[str, ...], where: str) -> _Scheme:
    """Read one group of compressed-tensors (modelopt writes the same)."""
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise ConfigError("a group of the quantisation config has no weights", where=where)
    bits, size = weights.get("num_bits"), weights.get("group_size")
    alone = group.get("input_activations") is None
    chosen = _compressed(bits, str(weights.get("type")), size if isinstance(size, int) else None, alone=alone)
    if chosen is None:
        raise ConfigError(f"{bits} bits of type {weights.get('type')!r} are not known", where=where)
    if weights.get("block_structure") == BLOCK_128:
        chosen = FORMATS["fp8_block128"]
    targets = tuple(str(item) for item in _items(group.get("targets")))
    return _Scheme(chosen, None if not targets or "Linear" in targets else targets, ignored)


def _compressed(bits: object, kind: str, group: int | None, *, alone: bool) -> Format | None:
    if (bits, kind) == (8, "float"):
        if group == 32:  # noqa: PLR2004  (the block of the MX formats)
            return FORMATS["mxfp8"]
        return FORMATS["fp8_weight_only" if alone else "fp8"]
    if (bits, kind) == (4, "float"):
        small = FORMATS["mxfp4" if group == 32 else "nvfp4"]  # noqa: PLR2004  (same)
        return Format(f"{small.name}_weight_only", small.bytes_per_weight, "bf16") if alone else small
    if kind == "int" and isinstance(bits, int):
        if bits == 8 and not group:  # noqa: PLR2004
            return FORMATS["int8_weight_only" if alone else "int8"]
        return Format(f"int{bits}_g{group}" if group else f"int{bits}", bits / 8 + (2 / group if group else 0), "bf16")
    return None


def _by_component(schemes: list[_Scheme], base: Format, layers: tuple[Layer, ...]) -> dict[Component, Format]:
    found: dict[Component, Format] = {}
    for component in PARTS:
        having = [index for index, layer in enumerate(layers) if _has(layer, component)]
        if not having:
            continue
        scheme = _scheme_for(schemes, component, having[-1])
        if scheme is None:
            continue
        kept = share_of_layers(scheme.ignored, component, having)
        found[component] = _blend(scheme.chosen, base, kept)
    return found


def _has(layer: Layer, component: Component) -> bool:
    if component is Component.ROUTED_EXPERTS:
        return hasattr(layer.ffn, "expert_elements")
    return any(part.component is component for part in layer.weights(1))


def _scheme_for(schemes: list[_Scheme], component: Component, layer: int) -> _Scheme | None:
    named = [s for s in schemes if s.targets is not None and covers(s.targets, component, layer)]
    return next(iter(named or [s for s in schemes if s.targets is None]), None)


def _blend(small: Format, base: Format, kept: float) -> Format:
    """Return the mean format of layers of which a share `kept` stays as it was."""
    if kept in {0.0, 1.0}:
        return base if kept else small
    size = kept * base.bytes_per_weight + (1 - kept) * small.bytes_per_weight
    return Format(f"{small.name} ({kept:.0%} {base.name})", size, small.compute)


def _kv_dtype(quant: Mapping[str, object]) -> KvDtype | None:
    algorithm, scheme = quant.get("kv_cache_quant_algo"), quant.get("kv_cache_scheme")
    if isinstance(scheme, Mapping):
        return KvDtype.FP8 if (scheme.get("num_bits"), scheme.get("type")) == (8, "float") else None
    return {"FP8": KvDtype.FP8, "NVFP4": KvDtype.NVFP4, "INT8": KvDtype.INT8}.get(str(algorithm).upper())


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _truth(value: object) -> bool:
    return value is True

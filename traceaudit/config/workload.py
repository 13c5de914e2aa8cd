"""The flags that say which model runs, how it is spread, and on what; importing them costs nothing."""

from dataclasses import dataclass

__all__ = ["RooflineFlags"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineFlags:
    """What the user typed; None where not given."""

    model: str | None = None
    gpu: str | None = None
    batch: int | None = None
    context: str | None = None
    tp: int = 1
    ep: int = 1
    dp: int = 1
    pp: int = 1
    weights_dtype: str | None = None
    kv_dtype: str | None = None
    draft_tokens: int = 0
    checkpoint: str | None = None
    params: str | None = None
    bits: str | None = None
    peak_gbps: str | None = None
    peak_tflops: str | None = None
    wall_ms: str | None = None
    tokens_per_second: str | None = None
    concurrency: int | None = None
    accept_length: str | None = None

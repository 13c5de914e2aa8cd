"""Kernels whose compulsory bytes and FLOP follow from their arguments.

``read_bytes`` counts each input once and ``write_bytes`` each output once. The loop reads a buffer
larger than the L2 cache before each call, so that inputs come from device memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from cuda.bindings import runtime
from torch import Tensor
from torch.nn import functional
from torch.profiler import record_function

from recorder.triton_kernels import scale_shift, starved_attention

__all__ = ["Case", "KnownKernelsLoop", "build_cases"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """One call and the work it must do."""

    name: str
    run: Callable[[], object]
    read_bytes: int
    write_bytes: int
    flop: int = 0


class KnownKernelsLoop:
    """A step runs every case once, each under the annotation ``known:NAME``.

    Cases that this build of torch cannot run are left out, with the reason in `truth`.
    """

    def __init__(self) -> None:
        self._evict = torch.ones(64 * MIB, device="cuda")
        self._cases: list[Case] = []
        self._unsupported: dict[str, str] = {}
        for case in build_cases():
            try:
                case.run()
                torch.cuda.synchronize()
            except (NotImplementedError, RuntimeError) as error:
                self._unsupported[case.name] = str(error).splitlines()[0]
            else:
                self._cases.append(case)

    def step(self) -> None:
        for case in self._cases:
            # Reading leaves no dirty lines, whose write-back would count for the next kernel.
            with record_function("evict"):
                self._evict.amax()
            with record_function(f"known:{case.name}"), torch.cuda.nvtx.range(f"known:{case.name}"):
                case.run()
        torch.cuda.synchronize()

    def truth(self) -> dict[str, object]:
        known = [
            {
                "name": case.name,
                "read_bytes": case.read_bytes,
                "write_bytes": case.write_bytes,
                "flop": case.flop,
            }
            for case in self._cases
        ]
        unsupported = {"unsupported": self._unsupported} if self._unsupported else {}
        return {"evict_bytes": self._evict.nbytes, **unsupported, "known": known}


def build_cases() -> list[Case]:
    """Allocate the buffers of every case on the current device, with a fixed seed."""
    torch.manual_seed(0)
    return [*_copies(), *_streaming(), *_matrices(), *_quantised(), *_attention(), *_experts()]


def _copies() -> Iterator[Case]:
    source, target = (torch.randn(128 * MIB, device="cuda") for _ in range(2))
    size = source.nbytes
    yield Case("copy-device", lambda: target.copy_(source), size, size)
    yield Case("memset", partial(_memset, target), 0, size)
    yield Case("fill", partial(target.fill_, 0.5), 0, size)
    host = torch.randn(16 * MIB).pin_memory()
    device = torch.empty(16 * MIB, device="cuda")
    yield Case("copy-to-device", lambda: device.copy_(host, non_blocking=True), 0, host.nbytes)
    yield Case("copy-to-host", lambda: host.copy_(device, non_blocking=True), host.nbytes, 0)


def _streaming() -> Iterator[Case]:
    first, second, out = (torch.randn(64 * MIB, device="cuda") for _ in range(3))
    size = out.nbytes
    yield Case("read-reduce", first.sum, size, out.element_size(), first.numel())
    yield Case(
        "triad",
        lambda: torch.add(first, second, alpha=3.0, out=out),
        2 * size,
        size,
        2 * out.numel(),
    )
    yield Case("triton-scale-shift", lambda: scale_shift(first, out), size, size, 2 * out.numel())

    rows, width = 16_384, 8_192
    table = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
    other = torch.randn_like(table)
    weight = torch.ones(width, device="cuda", dtype=torch.bfloat16)
    size = table.nbytes
    yield Case(
        "rms-norm",
        lambda: functional.rms_norm(table, (width,), weight),
        size + weight.nbytes,
        size + 4 * rows,
    )
    yield Case("softmax", lambda: table.softmax(dim=-1), size, size)
    yield Case("concatenate", lambda: torch.cat((table, other)), 2 * size, 2 * size)
    picked = torch.randperm(rows, device="cuda")[: rows // 2]
    yield Case(
        "embedding-rows",
        lambda: functional.embedding(picked, table),
        size // 2 + picked.nbytes,
        size // 2,
    )
    fused = torch.compile(lambda gate, up: functional.silu(gate) * up, dynamic=False)
    yield Case("compiled-silu-mul", lambda: fused(table, other), 2 * size, size)


def _matrices() -> Iterator[Case]:
    for name, rows, inner, columns in (
        ("gemm-decode", 16, 4096, 14_336),
        ("gemm-decode-wide", 16, 8192, 28_672),
        ("gemm-prefill", 8192, 8192, 8192),
    ):
        left = _bf16(rows, inner)
        weight = _bf16(columns, inner)
        yield Case(
            name,
            partial(functional.linear, left, weight),
            left.nbytes + weight.nbytes,
            rows * columns * 2,
            2 * rows * inner * columns,
        )
    left, right = _bf16(64, 16, 4096), _bf16(64, 4096, 512)
    yield Case(
        "bmm",
        lambda: torch.bmm(left, right),
        left.nbytes + right.nbytes,
        64 * 16 * 512 * 2,
        2 * 64 * 16 * 4096 * 512,
    )


def _quantised() -> Iterator[Case]:
    rows, inner, columns = 16, 8192, 28_672
    flop = 2 * rows * inner * columns
    out_bytes = rows * columns * 2

    left = _bf16(rows, inner).to(torch.float8_e4m3fn)
    weight = _bf16(columns, inner).to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    yield Case(
        "fp8-scaled-mm",
        lambda: torch._scaled_mm(left, weight.t(), one, one, out_dtype=torch.bfloat16),
        left.nbytes + weight.nbytes + 8,
        out_bytes,
        flop,
    )

    group = 128
    tokens = _bf16(rows, inner)
    nibbles = torch.randint(256, (columns, inner // 2), device="cuda", dtype=torch.uint8)
    packed = torch._convert_weight_to_int4pack(nibbles, 8)
    scales = _bf16(inner // group, columns, 2)
    yield Case(
        "int4-weight-mm",
        lambda: torch._weight_int4pack_mm(tokens, packed, group, scales),
        tokens.nbytes + packed.nbytes + scales.nbytes,
        out_bytes,
        flop,
    )

    bytes_ = torch.randint(-127, 128, (columns, inner), device="cuda", dtype=torch.int8)
    scale = _bf16(columns)
    yield Case(
        "int8-weight-mm",
        lambda: torch._weight_int8pack_mm(tokens, bytes_, scale),
        tokens.nbytes + bytes_.nbytes + scale.nbytes,
        out_bytes,
        flop,
    )


def _attention() -> Iterator[Case]:
    batch, heads, kv_heads, context, dim = 16, 32, 8, 4096, 128
    query = _bf16(batch, heads, 1, dim)
    keys, values = _bf16(batch, kv_heads, context, dim), _bf16(batch, kv_heads, context, dim)
    yield Case(
        "sdpa-decode",
        lambda: functional.scaled_dot_product_attention(query, keys, values, enable_gqa=True),
        query.nbytes + keys.nbytes + values.nbytes,
        query.nbytes,
        4 * batch * heads * context * dim,
    )
    prompt, past = _bf16(4, heads, 4096, dim), _bf16(4, heads, 4096, dim)
    yield Case(
        "sdpa-prefill-causal",
        lambda: functional.scaled_dot_product_attention(prompt, past, past, is_causal=True),
        2 * prompt.nbytes,
        prompt.nbytes,
        2 * 4 * heads * 4096 * 4096 * dim,
    )
    latent_query, cache = _bf16(16, 64, 512), _bf16(16, 2048, 512)
    mixed = torch.empty_like(latent_query)
    yield Case(
        "triton-starved-attention",
        lambda: starved_attention(latent_query, cache, mixed),
        latent_query.nbytes + cache.nbytes,
        mixed.nbytes,
        4 * 16 * 64 * 2048 * 512,
    )


def _experts() -> Iterator[Case]:
    tokens, hidden, inner, experts, top = 16, 2048, 5632, 16, 2
    state = _bf16(tokens, hidden)
    up = _bf16(experts, hidden, inner)
    chosen = torch.stack([torch.randperm(experts)[:top] for _ in range(tokens)])
    rows = [(chosen == expert).any(dim=1).nonzero().flatten().cuda() for expert in range(experts)]
    active = [expert for expert in range(experts) if rows[expert].numel()]
    weight_bytes = up[0].nbytes * len(active)

    def expert_by_expert() -> list[Tensor]:
        return [state.index_select(0, rows[expert]) @ up[expert] for expert in active]

    yield Case(
        "moe-expert-by-expert",
        expert_by_expert,
        weight_bytes + state.nbytes,
        tokens * top * inner * 2,
        2 * tokens * top * hidden * inner,
    )

    order = torch.cat(rows)
    grouped = state.index_select(0, order)
    ends = torch.tensor([row.numel() for row in rows]).cumsum(0).to("cuda", torch.int32)
    yield Case(
        "moe-grouped-mm",
        lambda: torch._grouped_mm(grouped, up, offs=ends),
        weight_bytes + grouped.nbytes + ends.nbytes,
        tokens * top * inner * 2,
        2 * tokens * top * hidden * inner,
    )


def _memset(target: Tensor) -> None:
    # zero_ runs a kernel in this torch; the profiler writes a memset row only for the driver's own.
    stream = torch.cuda.current_stream().cuda_stream
    (status,) = runtime.cudaMemsetAsync(target.data_ptr(), 0, target.nbytes, stream)
    if status:
        raise RuntimeError(f"cudaMemsetAsync failed: {status}")


def _bf16(*shape: int) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(torch.bfloat16)

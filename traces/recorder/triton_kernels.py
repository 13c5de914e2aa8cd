"""Triton kernels whose device-memory traffic follows from their arguments."""

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["decode_attention", "scale_shift", "silu_mul", "starved_attention"]


@triton.jit
def scale_shift_kernel(source, target, scale, shift, count, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = at < count
    value = tl.load(source + at, mask=inside)
    tl.store(target + at, value * scale + shift, mask=inside)


@triton.jit
def starved_attention_kernel(query, cache, output, batch, context, scale, DIM: tl.constexpr, TILE: tl.constexpr):
    """One program per query head walks the whole latent KV cache of all requests."""
    head = tl.program_id(0)
    heads = tl.num_programs(0)
    dims = tl.arange(0, DIM)
    for request in range(batch):
        row = (request * heads + head) * DIM + dims
        wanted = tl.load(query + row).to(tl.float32)
        best = -float("inf")
        total = 0.0
        mixed = tl.zeros((DIM,), dtype=tl.float32)
        for start in range(0, context, TILE):
            slots = request * context + start + tl.arange(0, TILE)
            latent = tl.load(cache + slots[:, None] * DIM + dims[None, :]).to(tl.float32)
            scores = tl.sum(latent * wanted[None, :], axis=1) * scale
            higher = tl.maximum(best, tl.max(scores, axis=0))
            weights = tl.exp(scores - higher)
            shrink = tl.exp(best - higher)
            total = total * shrink + tl.sum(weights, axis=0)
            mixed = mixed * shrink + tl.sum(latent * weights[:, None], axis=0)
            best = higher
        tl.store(output + row, (mixed / total).to(output.dtype.element_ty))


@triton.jit
def decode_attention_kernel(
    query,
    keys,
    values,
    output,
    query_stride,
    requests_per_program,
    context,
    walked,
    scale,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
):
    """Grouped-query attention of one query head over some of the requests."""
    head = tl.program_id(0)
    first = tl.program_id(1) * requests_per_program
    dims = tl.arange(0, DIM)
    for number in range(requests_per_program):
        request = first + number
        wanted = tl.load(query + request * query_stride + head * DIM + dims).to(tl.float32)
        base = (request * (HEADS // GROUP) + head // GROUP) * context
        best = -float("inf")
        total = 0.0
        mixed = tl.zeros((DIM,), dtype=tl.float32)
        for start in range(0, walked, TILE):
            slots = base + (start + tl.arange(0, TILE)) % context
            at = slots[:, None] * DIM + dims[None, :]
            key = tl.load(keys + at).to(tl.float32)
            scores = tl.sum(key * wanted[None, :], axis=1) * scale
            higher = tl.maximum(best, tl.max(scores, axis=0))
            weights = tl.exp(scores - higher)
            shrink = tl.exp(best - higher)
            value = tl.load(values + at).to(tl.float32)
            total = total * shrink + tl.sum(weights, axis=0)
            mixed = mixed * shrink + tl.sum(value * weights[:, None], axis=0)
            best = higher
        row = (request * HEADS + head) * DIM + dims
        tl.store(output + row, (mixed / total).to(output.dtype.element_ty))


@triton.jit
def silu_mul_kernel(gate_up, output, width, TILE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = at < width
    gate = tl.load(gate_up + row * 2 * width + at, mask=inside).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + at, mask=inside).to(tl.float32)
    gated = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(output + row * width + at, gated.to(output.dtype.element_ty), mask=inside)


@triton.jit
def gated_activation_kernel(gate_up, output, width, TILE: tl.constexpr):
    """Do what ``silu_mul_kernel`` does, under another name."""
    silu_mul_kernel(gate_up, output, width, TILE)


def scale_shift(source: Tensor, target: Tensor, *, tile: int = 4096) -> None:
    """Write ``source * 1.5 + 0.25``: each element read once and written once."""
    count = source.numel()
    scale_shift_kernel[(triton.cdiv(count, tile),)](source, target, 1.5, 0.25, count, TILE=tile)


def starved_attention(query: Tensor, cache: Tensor, output: Tensor) -> None:
    """Multi-query attention with one program per head, so the grid has ``heads`` blocks only.

    ``query`` and ``output`` are (batch, heads, dim), ``cache`` is (batch, context, dim) and serves
    as key and value. Every program reads all of ``cache``.
    """
    batch, heads, dim = query.shape
    starved_attention_kernel[(heads,)](
        query, cache, output, batch, cache.shape[1], dim**-0.5, DIM=dim, TILE=16, num_warps=4
    )


def silu_mul(gate_up: Tensor, *, renamed: bool = False) -> Tensor:
    """Return ``silu(gate) * up`` for rows that hold ``gate`` and ``up`` side by side."""
    rows, both = gate_up.shape
    output = torch.empty((rows, both // 2), device=gate_up.device, dtype=gate_up.dtype)
    kernel = gated_activation_kernel if renamed else silu_mul_kernel
    kernel[(rows, triton.cdiv(both // 2, 1024))](gate_up, output, both // 2, TILE=1024)
    return output


def decode_attention(
    query: Tensor, keys: Tensor, values: Tensor, *, programs_per_head: int, extra_slots: int = 0
) -> Tensor:
    """Attend with one query token a request, ``programs_per_head`` programs for each query head.

    ``query`` is (batch, heads, 1, dim), ``keys`` and ``values`` (batch, kv_heads, context, dim).
    ``programs_per_head`` divides the batch. The first ``extra_slots`` slots, a multiple of the tile
    of 32, are walked twice and weigh double: more work in the same shapes.
    """
    batch, heads, _, dim = query.shape
    kv_heads, context = keys.shape[1:3]
    output = torch.empty((batch, heads, 1, dim), device=query.device, dtype=query.dtype)
    decode_attention_kernel[(heads, programs_per_head)](
        query,
        keys,
        values,
        output,
        query.stride(0),
        batch // programs_per_head,
        context,
        context + extra_slots,
        dim**-0.5,
        HEADS=heads,
        GROUP=heads // kv_heads,
        DIM=dim,
        TILE=32,
        num_warps=4,
    )
    return output


def starved_attention_reference(query: Tensor, cache: Tensor) -> Tensor:
    """Return the same attention from torch, in float32."""
    scores = torch.einsum("bhd,bcd->bhc", query.float(), cache.float()) * query.shape[-1] ** -0.5
    return torch.einsum("bhc,bcd->bhd", scores.softmax(dim=-1), cache.float())

"""Triton kernels whose device-memory traffic follows from their arguments."""

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["decode_attention", "scale_shift", "silu_mul", "slot_gemv", "starved_attention"]


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


# A count that is 0 or a multiple of 16 would get a kernel of its own.
@triton.jit(do_not_specialize=["extra_rounds"])
def decode_attention_kernel(
    query,
    keys,
    values,
    output,
    query_stride,
    requests_per_program,
    context,
    scale,
    extra_rounds,
    one,
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
        for start in range(0, context, TILE):
            slots = base + start + tl.arange(0, TILE)
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
        for _ in range(extra_rounds):
            total *= one
        row = (request * HEADS + head) * DIM + dims
        tl.store(output + row, (mixed / total).to(output.dtype.element_ty))


@triton.jit
def slot_gemv_kernel(
    inputs,
    weights,
    output,
    chosen,
    order,
    width_in,
    width_out,
    SLOTS_PER_ROW: tl.constexpr,
    TILE_OUT: tl.constexpr,
    TILE_IN: tl.constexpr,
):
    """One tile of the product of one token with the matrix of one of its experts."""
    slot = tl.load(order + tl.program_id(1))
    rows = tl.program_id(0) * TILE_OUT + tl.arange(0, TILE_OUT)
    columns = tl.arange(0, TILE_IN)
    vector = inputs + slot // SLOTS_PER_ROW * width_in
    matrix = weights + tl.load(chosen + slot) * width_out * width_in + rows[:, None] * width_in
    products = tl.zeros((TILE_OUT, TILE_IN), dtype=tl.float32)
    for start in range(0, width_in, TILE_IN):
        value = tl.load(vector + start + columns).to(tl.float32)
        products += tl.load(matrix + start + columns[None, :]).to(tl.float32) * value[None, :]
    tl.store(output + slot * width_out + rows, tl.sum(products, axis=1).to(output.dtype.element_ty))


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
    query: Tensor, keys: Tensor, values: Tensor, *, programs_per_head: int, extra_rounds: int = 0
) -> Tensor:
    """Attend with one query token a request, ``programs_per_head`` programs for each query head.

    ``query`` is (batch, heads, 1, dim), ``keys`` and ``values`` (batch, kv_heads, context, dim).
    ``programs_per_head`` divides the batch, and the tile of 32 slots the context. Each program
    multiplies by one ``extra_rounds`` times for each request: more time, same result.
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
        dim**-0.5,
        extra_rounds,
        1.0,
        HEADS=heads,
        GROUP=heads // kv_heads,
        DIM=dim,
        TILE=32,
        num_warps=4,
    )
    return output


def slot_gemv(inputs: Tensor, weights: Tensor, chosen: Tensor, order: Tensor) -> Tensor:
    """Multiply tokens with the matrices of their experts, one matrix-vector product for each slot.

    A slot is one token at one of its experts. ``weights`` is (experts, width_out, width_in),
    ``chosen`` the expert of each slot and ``order`` the slots sorted by expert, so that slots of one
    expert find its weights in the L2 cache. ``inputs`` has one row for each slot or for each token.
    Tiles of 256 and 16 divide ``width_in`` and ``width_out``.
    """
    slots = chosen.numel()
    _, width_out, width_in = weights.shape
    output = torch.empty((slots, width_out), device=inputs.device, dtype=inputs.dtype)
    slot_gemv_kernel[(width_out // 16, slots)](
        inputs,
        weights,
        output,
        chosen,
        order,
        width_in,
        width_out,
        SLOTS_PER_ROW=slots // inputs.shape[0],
        TILE_OUT=16,
        TILE_IN=256,
        num_warps=4,
    )
    return output


def starved_attention_reference(query: Tensor, cache: Tensor) -> Tensor:
    """Return the same attention from torch, in float32."""
    scores = torch.einsum("bhd,bcd->bhc", query.float(), cache.float()) * query.shape[-1] ** -0.5
    return torch.einsum("bhc,bcd->bhd", scores.softmax(dim=-1), cache.float())

"""How a launch fills a device: blocks that a multiprocessor holds at once, and waves of blocks."""

from dataclasses import dataclass

__all__ = ["LaunchShape", "resident_blocks", "waves"]

WARP = 32
REGISTERS = 65536
REGISTER_UNIT = 256
"""Registers are handed out to warps in units of this size."""

SHARED_RESERVE = 1024
"""Bytes of shared memory that the system keeps in each block, from compute capability 8.0 on."""

# Compute capability: threads, blocks and shared memory (bytes) of one multiprocessor. CUDA C++ Programming Guide,
# "Technical Specifications per Compute Capability".
_LIMITS: dict[tuple[int, int], tuple[int, int, int]] = {
    (7, 0): (2048, 32, 96 << 10),
    (7, 5): (1024, 16, 64 << 10),
    (8, 0): (2048, 32, 164 << 10),
    (8, 6): (1536, 16, 100 << 10),
    (8, 9): (1536, 24, 100 << 10),
    (9, 0): (2048, 32, 228 << 10),
    (10, 0): (2048, 32, 228 << 10),
    (12, 0): (1536, 24, 100 << 10),
}


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """What a kernel is launched with; None where the trace does not tell.

    Attributes
    ----------
    grid, block
        Blocks, and threads of a block, by dimension.
    registers
        Registers of a thread.
    shared_mem
        Bytes of shared memory of a block.
    """

    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_mem: int | None = None


def resident_blocks(shape: LaunchShape, capability: tuple[int, int] | None) -> int | None:
    """Return how many blocks of a launch one multiprocessor can hold, None where the limits or the shape are unknown.

    Examples
    --------
    >>> resident_blocks(LaunchShape(block=(256, 1, 1), registers=64, shared_mem=0), (9, 0))
    4
    """
    limits = None if capability is None else _LIMITS.get(capability)
    if limits is None or capability is None or shape.block is None or shape.registers is None:
        return None
    threads, blocks, shared = limits
    warps = -(-shape.block[0] * shape.block[1] * shape.block[2] // WARP)
    if warps < 1:
        return None
    counts = [blocks, threads // (warps * WARP)]
    if shape.registers > 0:
        unit = -(-shape.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        counts.append(REGISTERS // unit // warps)
    reserve = SHARED_RESERVE if capability >= (8, 0) else 0
    if shape.shared_mem is not None and shape.shared_mem + reserve > 0:
        counts.append(shared // (shape.shared_mem + reserve))
    return max(min(counts), 0) or None


def waves(shape: LaunchShape, capability: tuple[int, int] | None, sms: int | None) -> float | None:
    """Return the blocks of a launch over those that the device holds at once, None where that is unknown.

    Examples
    --------
    >>> waves(LaunchShape((1056, 1, 1), (256, 1, 1), 64, 0), (9, 0), 132)
    2.0
    """
    resident = resident_blocks(shape, capability)
    if resident is None or not sms or shape.grid is None:
        return None
    return shape.grid[0] * shape.grid[1] * shape.grid[2] / (sms * resident)

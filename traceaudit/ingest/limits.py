"""Bounds on what an input may cost, so that a damaged or hostile file ends in a clear refusal."""

from dataclasses import dataclass

__all__ = ["Limits"]

_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading a trace may cost.

    Attributes
    ----------
    max_bytes
        Decompressed size in bytes. The largest traces that engines write are a few GB; a compression bomb is more.
    max_events
        Rows in the events array.
    max_event_bytes
        Text of one row. Rows with full call stacks stay below 1 MB; a longer one means that no row ends any more.
    max_metadata_bytes
        Text around the events array. Process groups of large runs take a few MB.
    max_names
        Distinct names, of which memory holds one each.
    max_devices
        Pairs of rank and device with ops in one file. Merged files hold the ranks of a few nodes; each costs an audit.
    block_bytes
        Text decoded at a time; memory use grows with it, speed hardly does.
    max_workers
        Further processes that a large file may be shared with, as far as there are processors.
    """

    max_bytes: int = 64 * _GIB
    max_events: int = 500_000_000
    max_event_bytes: int = 64 * _MIB
    max_metadata_bytes: int = 64 * _MIB
    max_names: int = 5_000_000
    max_devices: int = 4096
    block_bytes: int = 2 * _MIB
    max_workers: int = 3

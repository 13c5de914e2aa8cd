"""What `roofline` answers: the bytes of a step by component, the least time for it, and how far a measurement is off.

Bytes and FLOP are those of one GPU in one step. 1 GB = 1e9 bytes; a rate in GB/s is bytes by nanosecond.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from traceaudit.errors import InvariantError
from traceaudit.model.findings import Finding
from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.distance import Distance

__all__ = [
    "ByteRange",
    "Communication",
    "ComponentBytes",
    "ExpertUse",
    "Floor",
    "Gap",
    "Message",
    "Reading",
    "Roofline",
    "Setting",
]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes when all tokens choose the same experts, in expectation, and when no two tokens share one."""

    minimum: int
    expected: int
    maximum: int

    def __post_init__(self) -> None:
        """Check the order."""
        if not 0 <= self.minimum <= self.expected <= self.maximum:
            raise InvariantError(f"bytes out of order: {self.minimum}, {self.expected}, {self.maximum}")

    def plus(self, other: "ByteRange") -> "ByteRange":
        """Return the sum, bound by bound."""
        return ByteRange(self.minimum + other.minimum, self.expected + other.expected, self.maximum + other.maximum)


@dataclass(frozen=True, slots=True)
class ComponentBytes:
    """A part of what one GPU reads.

    Attributes
    ----------
    name
        The part.
    is_cache
        Whether it belongs to requests (cache, state) and not to the model.
    format
        How it is stored.
    sharing
        Whether ranks split it or each hold it whole.
    """

    name: str
    is_cache: bool
    format: str
    sharing: str
    size: ByteRange


@dataclass(frozen=True, slots=True)
class ExpertUse:
    """How many different experts of a layer a step touches."""

    layers: int
    count: int
    per_token: int
    tokens: int
    minimum: float
    expected: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Message:
    """A kind of message between GPUs: how often in a step, and what one GPU sends for all of them."""

    name: str
    calls: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class Communication:
    """What GPUs exchange in a step; not part of the floor, since it may overlap.

    Attributes
    ----------
    link, link_gbps
        The link and its rate in one direction; None where the device is not known.
    transfer_ns
        Bytes sent over the rate.
    latency_ns
        Least and most time that the calls take for themselves, by rule of thumb.
    """

    messages: tuple[Message, ...]
    link: str | None
    link_gbps: float | None
    transfer_ns: int | None
    latency_ns: tuple[int, int] | None

    @property
    def sent_bytes(self) -> int:
        """Bytes that one GPU sends in a step."""
        return sum(message.sent_bytes for message in self.messages)

    @property
    def calls(self) -> int:
        """Calls in a step."""
        return sum(message.calls for message in self.messages)


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time for the step: the longer of memory and compute.

    Attributes
    ----------
    minimum_ns, expected_ns, maximum_ns
        With the bytes of the three bounds.
    memory_ns
        Expected bytes over bandwidth.
    compute_ns
        FLOP over peaks; None where a peak is not known.
    bound
        ``memory`` or ``compute``: which is longer in expectation.
    """

    minimum_ns: int
    expected_ns: int
    maximum_ns: int
    memory_ns: int
    compute_ns: int | None
    bound: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A step time and how it was obtained."""

    step_ns: int
    source: str


@dataclass(frozen=True, slots=True)
class Gap:
    """How many times longer a step takes than its floor.

    Attributes
    ----------
    measured
        The step time that is held against the floor.
    factor, factor_of_minimum
        Measured over the expected floor, and over the minimum.
    numerator, denominator
        What `factor` divides by what.
    others
        Further readings of the same measurement, with their factors over the expected floor.
    """

    measured: Reading
    factor: float
    factor_of_minimum: float
    numerator: str
    denominator: str
    others: tuple[tuple[Reading, float], ...] = ()

    @property
    def remark(self) -> str:
        """What a measurement below the floor means; empty where it is none."""
        if self.factor_of_minimum < 1:
            return (
                "measured below the floor: no step is shorter than its floor, so model, batch, context or device are "
                "not this step's"
            )
        if self.factor < 1:
            return "measured below the expected floor: tokens agree on experts more than chance does"
        return ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What was asked: the model, the device and what runs on it.

    Attributes
    ----------
    description
        The model's layers, in a line each.
    parameters, active_parameters
        Weights of the model, and those that a token passes.
    context_min, context_mean, context_max
        Tokens in the cache of a request.
    accept_length
        Tokens that a request gains in a step.
    """

    model: str
    family: str | None
    description: tuple[str, ...]
    parameters: int | None
    active_parameters: int | None
    gpu: str | None
    batch: int
    tokens_per_request: int
    accept_length: float
    context_min: int
    context_mean: float
    context_max: int
    kv_dtype: str | None
    tp: int
    ep: int
    dp: int
    pp: int


@dataclass(frozen=True, slots=True)
class Roofline:
    """The result of `roofline`.

    Attributes
    ----------
    components
        Bytes by part, weights first; they sum to `weight_bytes` and `kv_bytes`.
    flop_by_dtype
        FLOP by the data type whose peak bounds them.
    peak_tflops
        The peak held against each of those; None where none is known.
    tokens_per_second_at_floor
        Of all engines together, at the expected floor.
    distance
        The way from the expected floor to the step of a trace; None without a trace.
    findings
        What was found about the trace.
    """

    setting: Setting
    components: tuple[ComponentBytes, ...]
    experts: ExpertUse | None
    flop_by_dtype: Mapping[str, int]
    peak_gbps: float
    peak_source: str
    peak_tflops: Mapping[str, float | None]
    floor: Floor
    communication: Communication
    tokens_per_second_at_floor: float
    gap: Gap | None
    assumptions: tuple[str, ...]
    distance: Distance | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def completeness(self) -> Completeness:
        """The findings about the trace; complete where none was read."""
        return Completeness.of(self.findings)

    @property
    def weight_bytes(self) -> ByteRange:
        """Bytes of weights."""
        return _total(item.size for item in self.components if not item.is_cache)

    @property
    def kv_bytes(self) -> int:
        """Bytes of caches and states; the bounds do not differ."""
        return sum(item.size.expected for item in self.components if item.is_cache)

    @property
    def flop(self) -> int:
        """FLOP of all data types."""
        return sum(self.flop_by_dtype.values())


def _total(sizes: Iterable[ByteRange]) -> ByteRange:
    total = ByteRange(0, 0, 0)
    for size in sizes:
        total = total.plus(size)
    return total

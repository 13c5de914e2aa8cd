"""What runs in a step, and amounts, as users type them: shared by the commands that take a model."""

import re
from decimal import Decimal, InvalidOperation

from traceaudit.errors import UsageError
from traceaudit.model.llm.quantisation import KvDtype

__all__ = ["cached_tokens", "kv_dtype", "peak", "positive_amount", "spread"]

SUFFIXES = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
LARGEST = Decimal(10) ** 18
MOST_REQUESTS = 1_000_000
UNITS = {"--peak-gbps": "GB/s (1e9 bytes a second)", "--peak-tflops": "TFLOP/s"}
PEAKS = (1e-3, 1e9)
"""In GB/s and TFLOP/s, from a microcontroller to a thousand racks: other numbers are slips of the keyboard."""


def cached_tokens(text: str, batch: int | None) -> tuple[int, ...]:
    """Read the tokens in the cache of each request: one number for all, or one for each.

    Raises
    ------
    UsageError
        If the text is no list of numbers, or another number of them than there are requests.

    Examples
    --------
    >>> cached_tokens("512", 3)
    (512, 512, 512)
    """
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--context is no number of tokens: {text!r}", hint="--context 512, or 512,768,1024") from None
    if batch is not None and not 1 <= batch <= MOST_REQUESTS:
        raise UsageError(
            f"--batch must be at least 1, found {batch}" if batch < 1 else f"--batch {batch} is no step",
            hint="it counts the requests that run in a step, by the server's log",
        )
    if len(lengths) == 1:
        return lengths * (batch or 1)
    if batch is not None and len(lengths) != batch:
        raise UsageError(f"--context has {len(lengths)} lengths for --batch {batch}", hint="give one, or one for each")
    return lengths


def kv_dtype(text: str | None) -> KvDtype | None:
    """Read how the cache is stored, in the engines' spellings; None for what the model itself fixes.

    Raises
    ------
    UsageError
        If it is no known type.
    """
    if text is None or text == "auto":
        return None
    name = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bfloat16": "bf16", "float16": "fp16"}.get(text, text)
    try:
        return KvDtype(name)
    except ValueError:
        raise UsageError(f"unknown cache type {text!r}", hint=f"take one of {', '.join(KvDtype)}") from None


def positive_amount(flag: str, text: str) -> float:
    """Read a positive number, with K, M, B or T behind it for powers of a thousand.

    Raises
    ------
    UsageError
        If it is none.

    Examples
    --------
    >>> positive_amount("--params", "13B")
    13000000000.0
    """
    match = re.fullmatch(r"\s*([0-9.eE+_-]+)\s*([KMBTkmbt]?)\s*", text)
    try:
        number = Decimal(match[1]) * SUFFIXES.get(match[2].upper(), 1) if match else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 < number <= LARGEST:
        raise UsageError(f"{flag} is no positive number: {text!r}", hint="write it as 13e9 or 1792, without a unit")
    return float(number)


def peak(flag: str, text: str) -> float:
    """Read a peak in GB/s or TFLOP/s, as `positive_amount`.

    Raises
    ------
    UsageError
        If it is no number, or no peak of any device.
    """
    number = positive_amount(flag, text)
    least, most = PEAKS
    if not least <= number <= most:
        raise UsageError(
            f"{flag} is no peak of any device: {text!r}",
            hint=f"check the exponent; {flag} counts {UNITS[flag]}",
        )
    return number


def spread(**ranks: int) -> None:
    """Check over how many ranks a model is spread, by the names of the flags.

    Raises
    ------
    UsageError
        If a number is below 1.
    """
    for flag, value in ranks.items():
        if value < 1:
            raise UsageError(f"--{flag} must be at least 1, found {value}", hint="it counts GPUs; 1 leaves it out")

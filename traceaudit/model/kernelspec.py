"""What a user's file says of kernels: bytes and FLOP of one launch, as numbers or as expressions.

Expressions know arithmetic and a few functions, and nothing else: they come from files that travel with traces.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from traceaudit.errors import ConfigError
from traceaudit.model.bytes.operands import OpCall

__all__ = ["Expression", "KernelSpec", "Scope", "expression"]

Value = float | tuple[int, ...]
LARGEST_POWER = 64
LONGEST = 500
LEAST_TO_COMPARE = 2  # min and max of one number are slips
MOST = 10**18  # sums over launches stay within 64 bits
UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
FIELDS = ("grid", "block", "blocks", "threads", "batch", "context", "tp")
Entry = TypeVar("Entry")
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "ceil": math.ceil, "floor": math.floor}
_ARGUMENTS = {"ceil": 1, "floor": 1, "dim": 2, "numel": 1, "nbytes": 1}
_OF_OPERANDS = ("dim", "numel", "nbytes")


class _UnknownError(Exception):
    """What an expression asks for is not known for this launch."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may use; None where it is not known.

    Attributes
    ----------
    call
        The framework op around the launch.
    config
        Fields of the model's configuration.
    """

    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    call: OpCall | None = None
    batch: int | None = None
    context: int | None = None
    tp: int | None = None
    config: Mapping[str, object] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """Return a variable."""
        found: Value | None
        if name in UNITS:
            return UNITS[name]
        if name in {"blocks", "threads"}:
            sizes = self.grid if name == "blocks" else self.block
            found = None if sizes is None else math.prod(sizes)
        else:
            found = getattr(self, name)
        if found is None:
            raise _UnknownError(name)
        return found


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression and where it stands."""

    text: str
    where: str
    tree: ast.expr

    def evaluate(self, scope: Scope) -> int | None:
        """Return the value, rounded to a whole number; None where the scope lacks what it asks for.

        Raises
        ------
        ConfigError
            If it divides by zero, or gives no number of 0 or more.
        """
        try:
            value = _number(self.tree, scope)
            whole = _whole(value)
        except _UnknownError:
            return None
        except OverflowError as exc:
            raise ConfigError(f"cannot evaluate {self.text!r}: a number grows too large", where=self.where) from exc
        except (ArithmeticError, ValueError, TypeError, IndexError) as exc:
            raise ConfigError(f"cannot evaluate {self.text!r}: {exc}", where=self.where) from exc
        if not 0 <= whole <= MOST:
            raise ConfigError(f"{self.text!r} gives {value:.6g}: between 0 and {MOST:.0e} is meant", where=self.where)
        return whole


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One entry of the file: kernels by name, and what a launch of them moves and computes."""

    match: re.Pattern[str]
    bytes: Expression
    flop: Expression | None
    where: str


def expression(text: str, where: str) -> Expression:
    """Parse and check an expression.

    Raises
    ------
    ConfigError
        If it is no expression, or uses a name or a construct that is not allowed.

    Examples
    --------
    >>> expression("2 * batch * 64 * MB", "spec.toml").evaluate(Scope(batch=2))
    256000000
    >>> expression("grid[0] * 4096", "spec.toml").evaluate(Scope()) is None
    True
    """
    if len(text) > LONGEST:
        raise ConfigError(f"an expression of more than {LONGEST} characters", where=where)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise ConfigError(f"no expression: {text!r}", where=where, hint=_HINT) from exc
    _check(tree, text, where)
    return Expression(text, where, tree)


_HINT = (
    f"numbers, + - * / // % **, {', '.join(_FUNCTIONS)}, {', '.join(FIELDS)}, {', '.join(UNITS)}, config.FIELD, "
    "dim(operand, axis), numel(operand), nbytes(operand)"
)


def _check(node: ast.expr, text: str, where: str) -> None:
    """Walk the tree and refuse whatever is not on the list."""
    if isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        return
    if isinstance(node, ast.Name) and node.id in (*FIELDS, *UNITS):
        return
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "config":
        return
    parts: list[ast.expr]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        parts = [node.operand]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in {"grid", "block"}:
        parts = [node.slice]
    elif isinstance(node, ast.Call) and _callable(node):
        parts = list(node.args)
    else:
        found = ast.unparse(node)
        raise ConfigError(f"{found!r} is not allowed in an expression: {text!r}", where=where, hint=_HINT)
    for part in parts:
        _check(part, text, where)


def _callable(node: ast.Call) -> bool:
    known = (*_FUNCTIONS, *_OF_OPERANDS)
    plain = not node.keywords and node.args and not any(isinstance(arg, ast.Starred) for arg in node.args)
    if not (isinstance(node.func, ast.Name) and node.func.id in known and plain):
        return False
    count = len(node.args)
    return count == _ARGUMENTS.get(node.func.id, max(count, LEAST_TO_COMPARE))


def _value(node: ast.expr, scope: Scope) -> Value:
    match node:
        case ast.Constant(value=int() | float() as number):
            value: Value = number
        case ast.Name(id=name):
            value = scope.value(name)
        case ast.Attribute(attr=name):
            value = _field(scope.config, name)
        case ast.BinOp(left=left, op=op, right=right):
            value = _arithmetic(op, _number(left, scope), _number(right, scope))
        case ast.UnaryOp(op=op, operand=operand):
            number = _number(operand, scope)
            value = -number if isinstance(op, ast.USub) else number
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            value = _element(scope.value(name), _number(index, scope))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            numbers = [_number(argument, scope) for argument in arguments]
            value = _FUNCTIONS[name](*numbers) if name in _FUNCTIONS else _of_operand(name, numbers, scope.call)
        case _:
            raise TypeError(f"no value of {ast.unparse(node)!r}")
    return value


def _whole(value: float) -> int:
    if isinstance(value, complex):
        raise TypeError("the root of a negative number")
    if not math.isfinite(value):  # of an integer beyond all floats, this raises OverflowError
        raise OverflowError
    return round(value)


def _arithmetic(op: ast.operator, left: float, right: float) -> float:
    if isinstance(op, ast.Pow) and abs(right) > LARGEST_POWER:
        raise ValueError(f"a power of {right:g}")
    return _BINARY[type(op)](left, right)


def _element(sizes: Value, index: float) -> float:
    if not isinstance(sizes, tuple):
        raise TypeError("no list")
    return _entry(sizes, index, "sizes")


def _entry(sequence: Sequence[Entry], index: float, what: str) -> Entry:
    if not -len(sequence) <= index < len(sequence):
        raise IndexError(f"number {index:g} of {len(sequence)} {what}, counted from 0")
    return sequence[int(index)]


def _number(node: ast.expr, scope: Scope) -> float:
    value = _value(node, scope)
    if isinstance(value, tuple):
        raise TypeError(f"{ast.unparse(node)} is a list: take one of it, as grid[0]")
    return value


def _field(config: Mapping[str, object], name: str) -> float:
    nested = config.get("text_config")
    value = config.get(name, nested.get(name) if isinstance(nested, Mapping) else None)
    if value is None:
        raise _UnknownError(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"config.{name} is no number")
    return value


def _of_operand(function: str, arguments: list[float], call: OpCall | None) -> float:
    if call is None:
        raise _UnknownError(function)
    operand = _entry(call.operands, arguments[0], "operands")
    if operand.cut:
        raise _UnknownError(function)
    if function == "dim":
        return _entry(operand.dims, arguments[1], "axes")
    return operand.numel if function == "numel" else operand.size_bytes

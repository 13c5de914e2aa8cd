"""Kernel names that writers left in their mangled form (Itanium C++ ABI), as far as it takes to tell what they name."""

import re
from dataclasses import dataclass, field

__all__ = ["demangled"]

_DIGITS = "0123456789"
_LENGTH = re.compile(r"[0-9]{1,6}")
_LITERAL = re.compile(r"L([a-z])(n?)(\d*)E")
_VALUE = re.compile(r"n?\d*")
_SUBSTITUTION = re.compile(r"S[0-9A-Z]*_")
_STANDARD = {"Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string"}
_PASSED_OVER = re.compile(r"[PROKVr]|T[yntp]|Dp|A\d*_")
"""Pointers, references, qualifiers, kinds of template parameters, packs, array bounds."""
_PARAMETER = re.compile(r"T\d*_")
_BUILTIN = {
    "v": "void",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "f": "float",
    "d": "double",
    "e": "long double",
    "Dh": "half",
    "Dn": "nullptr_t",
    "DF16_": "half",
    "DF16b": "bfloat16",
}
_ANONYMOUS = "_GLOBAL__N_1"
NOT_RESOLVED = "_"
"""Stands for a name that the mangled form abbreviates."""


@dataclass(slots=True)
class _Reader:
    """Reads a mangled name from left to right, writing what it names; open constructs are kept on a stack."""

    text: str
    at: int = 2  # behind the _Z
    written: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    items: list[int] = field(default_factory=list)

    def read(self) -> str:
        while self.at < len(self.text) and self._step():
            named = not self.open and self.written and self.written[-1] != "std::"
            if named and self.text[self.at : self.at + 1] != "I":
                break  # behind the function's name stand its parameters
        return "".join(self.written)

    def _step(self) -> bool:
        """Read one construct; return whether it is one that is known."""
        char = self.text[self.at]
        if char in _DIGITS:
            return self._identifier()
        if char in "INJXF":
            return self._push(char, 1)
        return {"E": self._close, "L": self._literal, "S": self._substitution}.get(char, self._other)()

    def _push(self, kind: str, length: int) -> bool:
        if kind == "I":
            self.written.append("<")
        elif kind != "J":
            self._separate()
        # The arguments of a pack go on with those before it.
        self.items.append(self.items[-1] if kind == "J" and self.items else 0)
        self.open.append(kind)
        self.at += length
        return True

    def _literal(self) -> bool:
        if self.open and self.open[-1] != "N":
            found = _LITERAL.match(self.text, self.at)
            if found:
                return self._item(("-" if found[2] else "") + found[3], found.end())
            return self._push("L", 3 if self.text.startswith("L_Z", self.at) else 1)
        self.at += 1  # internal linkage
        return True

    def _close(self) -> bool:
        if not self.open:
            return False
        kind, items = self.open.pop(), self.items.pop()
        self.at += 1
        if kind == "I":
            self.written.append(">")
        elif kind == "J" and self.items:
            self.items[-1] = items
        self._value()
        return True

    def _value(self) -> None:
        """Read the value behind the type of a literal."""
        if self.open and self.open[-1] == "L":
            found = _VALUE.match(self.text, self.at)
            if found and found[0]:
                self.written.append(f"({found[0].replace('n', '-')})")
                self.at = found.end()

    def _separate(self) -> None:
        if self.items:
            if self.items[-1]:
                self.written.append("::" if self.open[-1] == "N" else ", ")
            self.items[-1] += 1

    def _item(self, text: str, end: int) -> bool:
        self._separate()
        self.written.append(text)
        self.at = end
        self._value()
        return True

    def _identifier(self) -> bool:
        digits = _LENGTH.match(self.text, self.at)
        if digits is None:
            return False
        end = digits.end() + int(digits[0])
        name = self.text[digits.end() : end]
        return bool(name) and self._item("(anonymous namespace)" if name == _ANONYMOUS else name, end)

    def _substitution(self) -> bool:
        if self.text.startswith("St", self.at):
            return self._item("std", self.at + 2) if self.open and self.open[-1] == "N" else self._std()
        if found := _SUBSTITUTION.match(self.text, self.at):
            if self.open and self.open[-1] == "N" and self.text[found.end() : found.end() + 1] != "I":
                self.at = found.end()  # a namespace, as a rule
                return True
            return self._item(NOT_RESOLVED, found.end())
        name = _STANDARD.get(self.text[self.at : self.at + 2])
        return name is not None and self._item(name, self.at + 2)

    def _std(self) -> bool:
        self._separate()
        self.written.append("std::")
        if self.items:
            self.items[-1] = 0  # the name goes on
        self.at += 2
        return True

    def _other(self) -> bool:
        if passed := _PASSED_OVER.match(self.text, self.at):
            self.at = passed.end()
            return True
        if parameter := _PARAMETER.match(self.text, self.at):
            return self._item(NOT_RESOLVED, parameter.end())
        if self.open and self.open[-1] == "X":
            self.at += 1  # an operator
            return True
        codes = (self.text[self.at : self.at + length] for length in (5, 2, 1))
        code = next((code for code in codes if code in _BUILTIN), None)
        return code is not None and bool(self.open) and self._item(_BUILTIN[code], self.at + len(code))


def demangled(name: str) -> str:
    """Return the function that a mangled name names, with its template arguments; other names as they are.

    What the mangled form abbreviates is left out of qualified names and is ``_`` elsewhere, pointers and qualifiers are
    left out: enough to tell what a kernel is, not to compile it.

    Examples
    --------
    >>> demangled("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELb0EEEvPT0_")
    'aiter::add_rmsnorm_quant_kernel<bfloat16, bfloat16, 64, 0>'
    >>> demangled("nvjet_64x8_TNT")
    'nvjet_64x8_TNT'
    """
    return (_Reader(name).read() or name) if name.startswith("_Z") else name

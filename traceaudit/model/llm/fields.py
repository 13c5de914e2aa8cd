"""Typed access to a model's configuration, under the several names that one thing has in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from traceaudit.errors import ConfigError

__all__ = ["Fields"]

LARGEST = 10**9
NESTED = ("text_config", "llm_config", "language_config", "language_model_config")
SHARED = ("quantization_config", "tie_word_embeddings", "torch_dtype", "dtype", "expert_dtype")


@dataclass(frozen=True, slots=True)
class Fields:
    """A configuration and where it came from; remembers which keys were read."""

    values: Mapping[str, object]
    where: str
    used: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def of(cls, config: Mapping[str, object], where: str) -> "Fields":
        """Descend to the language model of a multi-modal configuration.

        Keys that describe the whole checkpoint (quantisation, tied embeddings) are taken from outside where the
        inner part lacks them.
        """
        for name in NESTED:
            inner = config.get(name)
            if isinstance(inner, Mapping) and "num_hidden_layers" in inner:
                outer = {key: config[key] for key in SHARED if config.get(key) is not None}
                return cls({**outer, **inner}, where)
        return cls(config, where)

    def has(self, *names: str) -> bool:
        """Return whether any of the names has a value."""
        return any(self.values.get(name) is not None for name in names)

    def integer(self, *names: str) -> int:
        """Return the first of the names that is there, as a positive integer.

        Raises
        ------
        ConfigError
            If none is there, or the value is no positive integer.
        """
        value = self.optional(*names)
        if value is None:
            raise ConfigError(f"no {' or '.join(names)} in the model's configuration", where=self.where)
        if value < 1:
            raise ConfigError(f"{names[0]} must be at least 1, found {value}", where=self.where)
        return value

    def optional(self, *names: str) -> int | None:
        """Return the first of the names that is there, as an integer, or None."""
        for name in names:
            value = self._take(name)
            if value is None:
                continue
            if not _is_count(value):
                raise ConfigError(f"{name} is no count: {value!r}", where=self.where)
            return int(float(str(value)))
        return None

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a truth value."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ConfigError(f"{name} is neither true nor false: {value!r}", where=self.where)
        return value

    def text(self, *names: str) -> str | None:
        """Return the first of the names that is there, as text, or None."""
        for name in names:
            value = self._take(name)
            if value is not None:
                return str(value)
        return None

    def strings(self, name: str, length: int) -> list[str] | None:
        """Return a list with one text for each layer, or None; longer lists are cut (draft layers follow)."""
        items = self._list(name)
        return None if items is None else [str(item) for item in self._cut(name, items, length)]

    def integers(self, name: str, length: int | None = None) -> list[int] | None:
        """Return a list of integers (one for each layer where `length` is given), or None."""
        items = self._list(name)
        if items is None:
            return None
        if any(not isinstance(item, int) for item in items):
            raise ConfigError(f"{name} is no list of integers", where=self.where)
        return [int(str(item)) for item in (items if length is None else self._cut(name, items, length))]

    def mapping(self, name: str) -> Mapping[str, object] | None:
        """Return a nested object, or None."""
        value = self._take(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(f"{name} is no object", where=self.where)
        return value

    def unread(self) -> Iterable[str]:
        """Return the keys with a value that nobody asked for."""
        return sorted(key for key, value in self.values.items() if value not in (None, False) and key not in self.used)

    def _take(self, name: str) -> object:
        self.used.add(name)
        return self.values.get(name)

    def _list(self, name: str) -> list[object] | None:
        value = self._take(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise ConfigError(f"{name} is no list", where=self.where)
        return value

    def _cut(self, name: str, items: list[object], length: int) -> list[object]:
        if len(items) < length:
            raise ConfigError(f"{name} has {len(items)} items for {length} layers", where=self.where)
        return items[:length]


def _is_count(value: object) -> bool:
    """Return whether it is a whole number of a size that something in a model may have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= LARGEST and value == int(value)

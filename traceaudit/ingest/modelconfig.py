"""Reads a model's configuration: ``config.json``, and ``hf_quant_config.json`` beside it."""

import errno
import json
from pathlib import Path

from traceaudit.errors import ConfigError
from traceaudit.ingest.jsonfaults import kind_of, problem_of

__all__ = ["is_there", "read_model_config"]

MOST_BYTES = 16 << 20
NAME, QUANT_NAME = "config.json", "hf_quant_config.json"


def read_model_config(path: str) -> dict[str, object]:
    """Return the content of a configuration file, or of the one in a folder.

    Where the configuration says nothing of quantisation, a ``hf_quant_config.json`` beside it does.

    Raises
    ------
    ConfigError
        If there is no such file, or it holds no JSON object.
    """
    file = Path(path)
    if file.is_dir():
        file = file / NAME
    config = _object(file)
    beside = file.with_name(QUANT_NAME)
    if config.get("quantization_config") is None and beside.is_file():
        config["quantization_config"] = {"quant_method": "modelopt", **_object(beside)}
    return config


def is_there(path: str) -> bool:
    """Tell whether something lies at `path`; else it may name a packaged model.

    Raises
    ------
    ConfigError
        If the system does not let the place be looked at.
    """
    try:
        return Path(path).exists()
    except ValueError:
        return False
    except OSError as exc:
        if exc.errno == errno.ENAMETOOLONG:
            return False
        raise ConfigError(f"cannot read the model's configuration: {exc.strerror or exc}", where=path) from exc


def _object(file: Path) -> dict[str, object]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ConfigError(f"more than {MOST_BYTES >> 20} MiB are no model configuration", where=str(file))
        data = file.read_bytes()
    except OSError as exc:
        raise ConfigError(f"cannot read the model's configuration: {exc.strerror or exc}", where=str(file)) from exc
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"the model's configuration is no JSON: {problem_of(exc)}", where=str(file)) from exc
    if not isinstance(content, dict):
        raise ConfigError(f"the model's configuration is {kind_of(content)}, not a JSON object", where=str(file))
    return content

"""Causes of failed vLLM starts that its message does not name: variables, files and options."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_VLLM: Final = "VLLM_"
_NO_NUMBER: Final = re.compile(
    r"(?:invalid literal for int\(\) with base \d+|could not convert string to float): "
    r"'(?P<value>.*?)'"
)
_VARIABLE: Final = re.compile(r"\b(?P<name>VLLM_[A-Z0-9_]+) '[^']*' (?:must be|appears to be)[^.]*")
_SAFETENSORS: Final = re.compile(r"Safetensor(?:s)?Error|deserializing header")
_HEADER_BYTES: Final = 8
_NOT_ALLOCATED: Final = re.compile(r"can't allocate\D{0,60}(?P<bytes>\d+) bytes")
_BLOCKS: Final = re.compile(r"No available memory for the cache blocks|KV cache is needed")
_OVERRIDE: Final = "num_gpu_blocks_override"
_SIZES: Final = ("max_num_seqs", "max_num_batched_tokens", "max_model_len")


def wrong_setting(text: str, model: str, options: Mapping[str, Any]) -> str | None:
    """Return the variable, file or option of a failure and the fix, or None. `text` is vLLM's."""
    return _variable(text) or _file(text, model) or _too_few_blocks(text, options)


def too_much_memory(text: str, options: Mapping[str, Any]) -> str | None:
    """Return the option that makes vLLM ask for more memory than there is, or None."""
    found = _NOT_ALLOCATED.search(text)
    if found is None:
        return None
    sizes = {name: options[name] for name in _SIZES if isinstance(options.get(name), int)}
    largest = max(sizes, key=lambda name: sizes[name], default="max_num_seqs")
    value = f"{sizes[largest]} is too much: " if largest in sizes else ""
    return (
        f"engine.options.{largest}: {value}vLLM tried to allocate "
        f"{int(found['bytes']) / 1024**3:.1f} GiB at once, more than the machine has; lower it"
    )


def _variable(text: str) -> str | None:
    """Return the environment variable of vLLM's with a value that it cannot read."""
    if found := _VARIABLE.search(text):
        return f"{found['name']}: {found[0]}; correct or unset this environment variable"
    if (found := _NO_NUMBER.search(text)) is None:
        return None
    for name, value in os.environ.items():
        if name.startswith(_VLLM) and value == found["value"]:
            return f"{name}: the environment variable is {value!r}; give a number, or unset it"
    return None


def _file(text: str, model: str) -> str | None:
    """Return the file of weights that cannot be read."""
    if not _SAFETENSORS.search(text):
        return None
    for file in sorted(Path(model).expanduser().glob("*.safetensors")):
        if (fault := _damage(file)) is not None:
            return f"engine.model: {file} {fault}; copy or download it again"
    return f"engine.model: a file of weights of {model} is incomplete; copy or download it again"


def _damage(file: Path) -> str | None:
    """Return what is wrong with a file in the format of safetensors: a size, a header, the data."""
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            header_bytes = int.from_bytes(opened.read(_HEADER_BYTES), "little")
            if size < _HEADER_BYTES or header_bytes > size - _HEADER_BYTES:
                return f"has {size} bytes and ends in its header"
            header = json.loads(opened.read(header_bytes))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
        whole = _HEADER_BYTES + header_bytes + max(ends, default=0)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return "has no valid header"
    return None if size == whole else f"has {size} of {whole} bytes"


def _too_few_blocks(text: str, options: Mapping[str, Any]) -> str | None:
    if options.get(_OVERRIDE) is None or not _BLOCKS.search(text):
        return None
    return (
        f"engine.options.{_OVERRIDE}: {options[_OVERRIDE]} blocks do not hold one request of "
        "max_model_len tokens; raise it, or leave it out and vLLM finds the number"
    )

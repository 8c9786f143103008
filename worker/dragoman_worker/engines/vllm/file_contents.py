"""What a model's files hold, read from samples: equal wherever their bytes are the same.

Names, sizes and sampled bytes are read, never times, paths or the order of a directory. Nothing is
kept between two starts: a cache by size and time is how two models get one identity.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

_MIB: Final = 1024**2
_WHOLE: Final = 32 * _MIB
"""Files up to this size are read whole: configuration, tokenizer, code, templates, adapters."""
_BLOCK: Final = 4096
"""Bytes of a sample: a page. It holds 2,048 weights in 16 bits, so a fine-tune that changes 1 % of
a tensor's weights at random is missed by one sample of the tensor once in 10^9."""
_SAMPLES: Final = 32_768
"""Samples of a model, besides the one that each tensor has: 128 MiB. 30 files of 1 to 5 GB take
half a second with the pages in memory, as vLLM leaves them, and a second without
(benchmarks/identity.py)."""
_LEAST_STRIDE: Final = _MIB
"""Bytes per sample at least, for models of up to 32 GiB."""
_HEAD: Final = 8 * _MIB
"""Read whole at the start of a weight file that is not of safetensors: GGUF has its configuration
and its vocabulary there."""
_TAIL: Final = _MIB
"""Likewise at its end: PyTorch's files are ZIP archives, whose directory has a checksum of every
tensor."""
_MOST_HEADER: Final = 100_000_000
"""Longest header that the safetensors library reads."""
_THREADS: Final = 8
_UNUSED: Final = frozenset(
    {".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"}
)
"""Documents and pictures about a model. Whatever else lies in its folder may change answers."""
_BYTECODE: Final = "__pycache__"

_Range = tuple[int, int]
"""Start and length in bytes."""


def contents(path: Path) -> list[tuple[str, int, str]]:
    """Return name, size in bytes and digest of each file of a model's folder, or of one file.

    Sub folders count, links are followed, hidden files and folders are left out. A file that this
    process may not read has no digest: it is not part of the model.
    """
    files = [("", path)] if path.is_file() else sorted(_files(path))
    sizes = [file.stat().st_size for _, file in files]
    stride = max(_LEAST_STRIDE, sum(size for size in sizes if size > _WHOLE) // _SAMPLES)
    with ThreadPoolExecutor(_THREADS) as pool:
        paths = [file for _, file in files]
        digests = list(pool.map(partial(_digest, stride=stride), paths, sizes))
    names = [name for name, _ in files]
    return list(zip(names, sizes, digests, strict=True))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name, relative to the folder, and the path of each file that may change answers."""
    seen = set[str]()
    for parent, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        folders[:] = [] if real in seen else [name for name in folders if _counts(name)]
        if real not in seen:
            seen.add(real)
            files = (Path(parent, name) for name in names if _counts(name))
            yield from (
                (file.relative_to(folder).as_posix(), file) for file in files if file.is_file()
            )


def _counts(name: str) -> bool:
    hidden = name.startswith(".") or name == _BYTECODE
    return not hidden and Path(name).suffix.lower() not in _UNUSED


def _digest(file: Path, size: int, *, stride: int) -> str:
    """Return the SHA-256, in hex, of what is read of a file; '' if it cannot be read."""
    digest = sha256()
    try:
        opened = os.open(file, os.O_RDONLY)
    except OSError:
        return ""
    try:
        for start, length in _asked_for(opened, _ranges(opened, size, stride)):
            digest.update(os.pread(opened, length, start))
    except OSError:
        return ""
    finally:
        os.close(opened)
    return digest.hexdigest()


def _ranges(opened: int, size: int, stride: int) -> list[_Range]:
    """Return what is read of a file."""
    if size <= _WHOLE:
        return list(_whole(0, size))
    header = _header(opened, size)
    if header is None:
        middle = _samples(_HEAD, size - _HEAD - _TAIL, stride)
        return [*_whole(0, _HEAD), *middle, *_whole(size - _TAIL, _TAIL)]
    begin, tensors = header
    samples = (_samples(begin + start, end - start, stride) for start, end in tensors)
    return [*_whole(0, begin), *(sample for each in samples for sample in each)]


def _asked_for(opened: int, ranges: list[_Range]) -> Iterable[_Range]:
    """Return the ranges, all asked for at once: those not in memory then come side by side."""
    if hasattr(os, "posix_fadvise"):
        for start, length in ranges:
            os.posix_fadvise(opened, start, length, os.POSIX_FADV_WILLNEED)
    return ranges


def _whole(start: int, length: int) -> Iterator[_Range]:
    """Yield the ranges of one part in order, none so long that it fills the memory."""
    for offset in range(0, length, _MIB):
        yield start + offset, min(_MIB, length - offset)


def _samples(start: int, length: int, stride: int) -> Iterator[_Range]:
    """Yield the middle of every stretch of about `stride` bytes, one at least."""
    count = max(1, length // stride)
    if length <= count * _BLOCK:
        yield from _whole(start, length)
        return
    for number in range(count):
        middle = start + (2 * number + 1) * length // (2 * count)
        yield middle - _BLOCK // 2, _BLOCK


def _header(opened: int, size: int) -> tuple[int, list[_Range]] | None:
    """Return where the tensors of a safetensors file begin, and the start and end of each.

    Both from there. None for a file of another kind.
    """
    length = int.from_bytes(os.pread(opened, 8, 0), "little")
    if not 2 <= length <= min(_MOST_HEADER, size - 8):
        return None
    try:
        members = json.loads(os.pread(opened, length, 8))
        places = (each["data_offsets"] for name, each in members.items() if name != "__metadata__")
        tensors = sorted((int(start), int(end)) for start, end in places)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if any(not 0 <= start <= end <= size - 8 - length for start, end in tensors):
        return None
    return 8 + length, tensors

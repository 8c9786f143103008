"""What is read of a model's files: enough to tell two apart, little enough for each start."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from dragoman_worker.engines.vllm.file_contents import contents

LARGE: Final = 40 * 1024**2
"""More than is read whole."""


def changed(file: Path, place: int, held: bytes = b"fine-tuned") -> None:
    """Write over a part of a file, which keeps its size and its time."""
    times = file.stat().st_mtime_ns
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(held)
    os.utime(file, ns=(times, times))


def sparse(file: Path, size: int, head: bytes = b"") -> None:
    with file.open("wb") as opened:
        opened.write(head)
        opened.truncate(size)


def header(tensors: dict[str, tuple[int, int]]) -> bytes:
    members = {name: {"dtype": "BF16", "data_offsets": place} for name, place in tensors.items()}
    text = json.dumps(members).encode()
    return len(text).to_bytes(8, "little") + text


def model_of_layers(folder: Path, *, files: int, layers: int, layer_bytes: int) -> list[int]:
    """Make files of safetensors with `layers` each; return where their tensors begin."""
    places = {f"layer.{n}": (n * layer_bytes, (n + 1) * layer_bytes) for n in range(layers)}
    head = header(places)
    for number in range(files):
        size = len(head) + layers * layer_bytes
        sparse(folder / f"model-{number}.safetensors", size, head)
    return [len(head) + start for start, _ in places.values()]


@pytest.mark.parametrize("layer", range(12))
def test_a_fine_tune_of_any_one_tensor_is_seen(tmp_path: Path, layer: int) -> None:
    starts = model_of_layers(tmp_path, files=2, layers=12, layer_bytes=LARGE // 10)
    before = contents(tmp_path)
    changed(tmp_path / "model-1.safetensors", starts[layer], b"1" * (LARGE // 10))
    assert contents(tmp_path) != before


def test_a_small_tensor_among_large_ones_is_seen(tmp_path: Path) -> None:
    weights, norm = tmp_path / "model.safetensors", 600
    head = header({"a": (0, LARGE), "norm": (LARGE, LARGE + norm), "b": (LARGE + norm, 2 * LARGE)})
    sparse(weights, len(head) + 2 * LARGE, head)
    before = contents(tmp_path)
    changed(weights, len(head) + LARGE + 299, b"1")
    assert contents(tmp_path) != before


def test_one_expert_of_a_tensor_of_many_is_seen(tmp_path: Path) -> None:
    weights, expert = tmp_path / "model.safetensors", 4 * 1024**2
    head = header({"experts": (0, 64 * expert)})
    sparse(weights, len(head) + 64 * expert, head)
    before = contents(tmp_path)
    changed(weights, len(head) + 41 * expert, b"1" * expert)
    assert contents(tmp_path) != before


@pytest.mark.parametrize("name", ["model.gguf", "pytorch_model.bin", "model.safetensors"])
@pytest.mark.parametrize("place", [0, 1024**2, LARGE // 2, LARGE - 1024**2])
def test_a_weight_file_without_a_known_header_is_sampled_throughout(
    tmp_path: Path, name: str, place: int
) -> None:
    sparse(tmp_path / name, LARGE)
    before = contents(tmp_path)
    changed(tmp_path / name, place, b"1" * 1024**2)
    assert contents(tmp_path) != before


@pytest.mark.parametrize(
    "head",
    [
        (2**40).to_bytes(8, "little"),
        (4).to_bytes(8, "little") + b"nono",
        (2).to_bytes(8, "little") + b"[]",
        header({"a": (0, 10**12)}),
        header({"a": (-5, 10)}),
        (40_000).to_bytes(8, "little") + b"[" * 40_000,
    ],
)
def test_a_header_that_says_nothing_true_is_read_as_any_file(tmp_path: Path, head: bytes) -> None:
    sparse(tmp_path / "model.safetensors", LARGE, head)
    [(name, size, digest)] = contents(tmp_path)
    assert (name, size, len(digest)) == ("model.safetensors", LARGE, 64)


@pytest.mark.parametrize(
    "name",
    [
        "modeling_mine.py",
        "qwen.tiktoken",
        "merges.txt",
        "sub/config.json",
        "tekken",
        "a.b/c/d.vocab",
    ],
)
def test_every_other_file_counts_in_sub_folders_too(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("one")
    before = contents(tmp_path)
    changed(file, 0, b"two")
    assert contents(tmp_path) != before


@pytest.mark.parametrize(
    "name",
    ["README.md", "logo.PNG", ".cache/huggingface/x.lock", "__pycache__/mine.pyc", ".git/HEAD"],
)
def test_what_changes_no_answer_does_not_count(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = contents(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("new")
    assert contents(tmp_path) == before


def test_links_are_followed_and_a_circle_of_them_ends(tmp_path: Path) -> None:
    real, linked = tmp_path / "blobs", tmp_path / "snapshot"
    for folder in (real, linked):
        folder.mkdir()
    (real / "0a1b").write_text("weights")
    (linked / "model.bin").symlink_to(real / "0a1b")
    (linked / "again").symlink_to(linked)
    (linked / "lost").symlink_to(tmp_path / "nowhere")
    assert [name for name, _, _ in contents(linked)] == ["model.bin"]


def test_files_that_are_renamed_into_each_other_are_seen(tmp_path: Path) -> None:
    for name, held in (("a.bin", "1"), ("b.bin", "2")):
        (tmp_path / name).write_text(held)
    before = contents(tmp_path)
    for name, held in (("a.bin", "2"), ("b.bin", "1")):
        (tmp_path / name).write_text(held)
    assert contents(tmp_path) != before


def test_thirty_files_of_many_gigabytes_are_read_in_small_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_of_layers(tmp_path, files=30, layers=30, layer_bytes=10**8)
    read, pread = list[int](), os.pread

    def counted(opened: int, length: int, place: int) -> bytes:
        read.append(length)
        return pread(opened, length, place)

    monkeypatch.setattr(os, "pread", counted)
    contents(tmp_path)
    assert sum(read) < 140 * 1024**2
    assert len(read) < 34_000

"""Unit tests of the public names of the client, and of its light start."""

from __future__ import annotations

import subprocess
import sys

import dragoman_producer


def test_every_public_name_can_be_imported_and_the_list_is_sorted() -> None:
    assert list(dragoman_producer.__all__) == sorted(dragoman_producer.__all__)
    for name in dragoman_producer.__all__:
        assert getattr(dragoman_producer, name).__name__ == name
    assert dir(dragoman_producer) == sorted(dragoman_producer.__all__)


def test_every_error_of_the_tree_is_public() -> None:
    from dragoman_producer import errors

    public = {
        name
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, errors.DragomanError)
    }
    assert public <= set(dragoman_producer.__all__)


def test_the_command_starts_without_kafka_redis_and_pydantic() -> None:
    heavy = "{'aiokafka', 'redis', 'pydantic', 'torch', 'vllm', 'rich'}"
    code = f"import sys, dragoman_producer.cli.commands; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "[]"

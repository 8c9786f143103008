"""Heads of parts in multipart bodies of documents."""

from __future__ import annotations

import time

import pytest

from dragoman_gateway.documents.multipart import _filename


@pytest.mark.parametrize("tail", ["\\a" * 4000, ';filename="' * 700, "\\" * 8000])
def test_a_crafted_file_name_takes_no_time(tail: str) -> None:
    began = time.process_time()
    _filename(f'form-data; name="file"; filename="{tail}')
    assert time.process_time() - began < 1.0


def test_a_file_name_with_quotes_is_read_whole() -> None:
    assert _filename(r'form-data; name="file"; filename="a \"b\".txt"') == 'a "b".txt'

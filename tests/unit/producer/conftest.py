"""What tests of runs over documents share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman_documents import registry
from support.documents import line_format


@pytest.fixture
def line_formats(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Make the formats of `line_format` known, as those of an installed package."""
    line_format.install(tmp_path_factory.mktemp("site"), monkeypatch)
    yield
    registry._others.cache_clear()
    registry.codec.cache_clear()

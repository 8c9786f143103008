"""Tests of what the options of `dragoman translate` may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_producer.cli.translate_stdin import refusal
from dragoman_producer.documents.options import (
    Unusable,
    _encoding,
    _formats,
    _glossary,
    request_of,
)

"""Everything that forked replicas and commands import and read at their start.

Each replica has a language detector of its own, which reads the model (0.7 s). Forks share one.
"""

from __future__ import annotations

import functools

import dragoman_producer.cli  # noqa: F401  what the commands run
import dragoman_worker.__main__
import dragoman_worker.app  # noqa: F401  what the forks run
from dragoman_worker.prompts import names
from dragoman_worker.quality import language

_read_model = functools.cache(language._read_model)
language._read_model = _read_model
_read_model()
names.load()

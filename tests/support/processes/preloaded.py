"""Everything that forked replicas, supervisors and commands import and read at their start."""

from __future__ import annotations

import dragoman_producer.cli  # noqa: F401  what the commands run
import dragoman_worker.__main__
import dragoman_worker.app
import dragoman_worker.process.supervisor  # noqa: F401  what the forks run
from dragoman_worker.prompts import names

names.load()

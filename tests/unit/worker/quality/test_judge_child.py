"""Tests of what a judge process loads."""

from __future__ import annotations

import subprocess
import sys


def test_it_loads_no_models_of_jobs_which_take_longer_than_all_gates() -> None:
    code = (
        "import sys, dragoman_worker.quality.judge_child;"
        "print(sorted({'pydantic', 'redis', 'aiokafka', 'vllm'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"

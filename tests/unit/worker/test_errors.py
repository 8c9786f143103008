"""Every error code has one class of failure, so that no code is lost on its way to a result."""

from __future__ import annotations

import pytest

from dragoman_schemas.failures import FailureCode
from dragoman_worker import errors
from dragoman_worker.errors import JOB_ERRORS, JobError

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, JobError) and JobError in kind.__bases__
]


@pytest.mark.parametrize("code", FailureCode)
def test_each_code_has_one_class_which_fails_a_job_with_it(code: FailureCode) -> None:
    assert [kind.code for kind in KINDS].count(code) == 1
    failure = JOB_ERRORS[code]("a text")
    assert (failure.code, failure.message) == (code, "a text")

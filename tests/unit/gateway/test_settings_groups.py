"""Every group of settings of every program is known to all of them."""

from __future__ import annotations

from dragoman_connections.invalid_settings import TOP_LEVEL
from dragoman_gateway.settings import GatewaySettings
from dragoman_worker.settings import WorkerSettings


def test_a_file_with_the_groups_of_all_programs_is_read_by_each() -> None:
    assert {*WorkerSettings.model_fields, *GatewaySettings.model_fields} == TOP_LEVEL

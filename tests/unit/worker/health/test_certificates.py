"""Tests of the expiry of certificates against openssl's own answer, and with broken files."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_worker.health.certificates import (
    LARGEST_FILE,
    Kind,
    certificate_files,
    expiries,
    expiry_forever,
)
from dragoman_worker.metrics import Metrics
from support.processes.waiting import eventually
from support.services.certificates import Authority, Certificate


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Certificate:
    return authority.issue("client", days=30_000)  # past 2050, where the form of the time changes


def _said_by_openssl(file: Path) -> float:
    command = ["openssl", "x509", "-enddate", "-noout", "-in", str(file)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    said = answer.stdout.strip().replace("GMT", "+0000")
    return datetime.strptime(said, "notAfter=%b %d %H:%M:%S %Y %z").timestamp()


def test_expiry_is_the_one_that_openssl_reports(authority: Authority, client: Certificate) -> None:
    for file in (authority.ca, client.certificate):
        assert expiries(file) == [_said_by_openssl(file)]


def _bundle(folder: Path, authority: Authority, client: Certificate) -> Path:
    file = folder / "bundle.pem"
    file.write_text(authority.ca.read_text() + "comment\n" + client.certificate.read_text())
    return file


async def _exported(file: Path, kind: Kind) -> float | None:
    metrics = Metrics(CollectorRegistry())
    task = asyncio.create_task(expiry_forever({kind: file}, metrics))
    labels = {"connection": kind[0], "certificate": kind[1]}
    name = "dragoman_certificate_expiry_timestamp_seconds"
    try:
        await eventually(
            lambda: metrics.registry.get_sample_value(name, labels), timeout_s=30, what=name
        )
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return metrics.registry.get_sample_value(name, labels)


async def test_a_chain_expires_with_its_first_certificate_and_a_bundle_with_its_last(
    authority: Authority, client: Certificate, tmp_path: Path
) -> None:
    file = _bundle(tmp_path, authority, client)
    times = [_said_by_openssl(one) for one in (authority.ca, client.certificate)]
    assert await _exported(file, ("kafka", "client")) == min(times)
    assert await _exported(file, ("redis", "authority")) == max(times)


def test_files_of_both_connections_are_found(tmp_path: Path) -> None:
    options = {
        "kafka.ssl_cafile": tmp_path / "ca.pem",
        "redis.url": "rediss://redis:6379/0?ssl_ca_certs=/etc/redis/ca.pem&ssl_certfile=/c.pem",
    }
    assert certificate_files(load_settings(DragomanSettings, options=options)) == {
        ("kafka", "authority"): tmp_path / "ca.pem",
        ("redis", "authority"): Path("/etc/redis/ca.pem"),
        ("redis", "client"): Path("/c.pem"),
    }
    assert certificate_files(DragomanSettings()) == {}


async def test_nothing_runs_without_certificates() -> None:
    async with asyncio.timeout(30):
        await expiry_forever({}, Metrics(CollectorRegistry()))


_PEM = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00" * 1000,
        "-----BEGIN CERTIFICATE-----\nMIIB",
        _PEM.format(""),
        _PEM.format("!?"),
        _PEM.format("MIIB"),
        _PEM.format("ÿ"),
        _PEM.format("A" * 100_000),
        _PEM.format("MP////////////8="),
        "-----BEGIN CERTIFICATE-----" * 30_000,
    ],
)
def test_a_file_without_a_valid_certificate_has_no_expiry(text: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.pem"
    file.write_text(text, encoding="latin-1")
    assert expiries(file) == []


def test_a_missing_or_endless_or_huge_file_has_no_expiry(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "huge").write_bytes(b"x" * (LARGEST_FILE + 1))
    for name in ("missing", "fifo", "huge", "."):
        assert expiries(tmp_path / name) == []
    assert expiries(Path("/dev/zero")) == []

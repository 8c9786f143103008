"""The gateway of a box: a real `dragoman serve`, with a key that is made once."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from dragoman_producer.box.engine_choice import OWNED, EngineChoice
from dragoman_producer.box.failures import writing
from dragoman_producer.box.part_child import Part, environment_without, free_port

USUAL_PORT: Final = 8787
_NEEDS: Final = (
    "dragoman_gateway",
    *("aiohttp", "hiredis", "jinja2", "prometheus_client", "py3langid", "yaml"),
)
"""The package, and modules of the extra `serve`."""
_GRACE_S: Final = 10.0
_EXIT_S: Final = _GRACE_S + 10.0


def is_installed() -> bool:
    """Whether this installation has the gateway."""
    return all(find_spec(name) is not None for name in _NEEDS)


def gateway_part(choice: EngineChoice, data: Path, *, bootstrap: str, redis_url: str) -> Part:
    """Return how the gateway of a box runs. Its callers need the key of `own_key`."""
    port = free_port()
    serve: dict[str, Any] = {
        "admin_port": port,
        "keys_file": str(_keys_file(data)),
        "grace_s": _GRACE_S,
        "documents": {"dir": str(data / "documents")},
    }
    if not _port_is_given(choice):
        serve["port"] = _usual_or_free_port()
    return Part(
        name="gateway",
        program="dragoman serve",
        arguments=("dragoman_gateway",),
        settings={
            "kafka": {"bootstrap_servers": bootstrap},
            "redis": {"url": redis_url},
            "serve": serve,
        },
        pairs=choice.settings_of(gateway=True),
        environment=environment_without(OWNED),
        page_port=port,
        exit_s=_EXIT_S,
    )


def own_key(data: Path) -> str:
    """Return the secret of a box's own key, which may do everything; make it where there is none.

    The file of keys beside it may hold more of them. Raises BoxFailed.
    """
    with writing(data / "gateway.key"):
        return _own_key(data / "gateway.key", _keys_file(data))


def _own_key(file: Path, keys: Path) -> str:
    secret = file.read_text(encoding="utf-8").strip() if file.exists() else ""
    if not secret:
        secret = f"dg_{secrets.token_urlsafe(32)}"
        _append(file, secret + "\n")
    digest = hashlib.sha256(secret.encode()).hexdigest()
    if not keys.exists() or digest not in keys.read_text(encoding="utf-8"):
        lines = (f'id = "box-{digest[:8]}"', f'sha256 = "{digest}"', 'roles = ["admin"]')
        _append(keys, "\n".join(("[[key]]", *lines, "")))
    return secret


def _keys_file(data: Path) -> Path:
    return data / "gateway-keys.toml"


def _append(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as opened:
        opened.write(text)


def _port_is_given(choice: EngineChoice) -> bool:
    given = any(text.startswith("serve.port=") for text in choice.settings)
    return given or "DRAGOMAN_SERVE__PORT" in os.environ


def _usual_or_free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", USUAL_PORT))
        except OSError:
            return free_port()
    return USUAL_PORT

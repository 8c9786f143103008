"""The model that a server with OpenAI's API serves, for its name."""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from dragoman_producer.box.failures import BoxFailed, BoxUnusable

_WITHIN_S: Final = 10.0
_MOST_BYTES: Final = 1_000_000


def served_model(url: str) -> str:
    """Return the name of a server's only model. Raises BoxFailed, and BoxUnusable of several."""
    address = url.rstrip("/").removesuffix("/v1").rstrip("/") + "/v1/models"
    try:
        names = _names(_asked(address))
    except urllib.error.HTTPError as error:
        key = "; set DRAGOMAN_ENGINE__API_KEY" if error.code in {401, 403} else ""
        raise BoxFailed(f"--server {url}: {address} answered {error.code}{key}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = getattr(error, "reason", error)
        raise BoxFailed(
            f"--server {url}: {address} gave no list of models ({why}); is the server running?"
        ) from None
    if len(names) == 1:
        return names[0]
    if not names:
        raise BoxFailed(f"--server {url} serves no model; load one there")
    raise BoxUnusable(
        f"--server {url} serves several models ({', '.join(names)}); name one: "
        "--set engine.model=NAME"
    )


def _asked(address: str) -> Any:
    request = urllib.request.Request(address)  # noqa: S310 - http or https, as checked
    if key := _key():
        request.add_header("Authorization", f"Bearer {key}")
    context = ssl.create_default_context(cafile=os.environ.get("DRAGOMAN_ENGINE__CA_FILE"))
    with urllib.request.urlopen(request, timeout=_WITHIN_S, context=context) as reply:  # noqa: S310
        return json.loads(reply.read(_MOST_BYTES))


def _key() -> str:
    if file := os.environ.get("DRAGOMAN_ENGINE__API_KEY_FILE"):
        return Path(file).read_text(encoding="utf-8").strip()
    return os.environ.get("DRAGOMAN_ENGINE__API_KEY", "")


def _names(reply: Any) -> list[str]:
    """Return the names of the models; an adapter's parent is another model."""
    return [str(model["id"]) for model in reply["data"] if not model.get("parent")]

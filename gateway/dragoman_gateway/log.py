"""One line of JSON for each request, without a text, written by a thread that stops no request."""

from __future__ import annotations

import json
import queue
import sys
import threading
from datetime import UTC, datetime
from typing import Any, Final

from dragoman_connections.terminal import print_to

_MOST_LINES: Final = 10_000


class Log:
    """Lines on stderr. While nobody reads them they are dropped, and counted."""

    def __init__(self, *, requests: bool) -> None:
        self.dropped = 0
        self._requests = requests
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST_LINES)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def request(self, **fields: Any) -> None:
        """Write what is known of a request, if the settings want it."""
        if self._requests:
            self.event("request", **fields)

    def warning(self, message: str) -> None:
        """Write a sentence for the operator."""
        self.event("warning", message=message)

    def event(self, event: str, **fields: Any) -> None:
        """Write one line."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            self._lines.put_nowait(json.dumps({"timestamp": at, "event": event, **fields}))
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Write what is left, for a moment at most."""
        try:
            self._lines.put(None, timeout=1)
        except queue.Full:
            return
        self._thread.join(timeout=1)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            print_to(sys.stderr, line, flush=True)

"""Callers of a gateway who ask for one text after the other, and for each until it is answered."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any

from support.processes.waiting import wait_until


def post(
    url: str, body: dict[str, Any], timeout_s: float = 90, key: str = "any"
) -> tuple[int, Any]:
    """Return status and JSON of the answer; status 0 if there was none."""
    request = urllib.request.Request(  # noqa: S310 - of this machine
        f"{url}/v2/translate",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"DeepL-Auth-Key {key}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError:
        return 0, None


def asked(text: str) -> dict[str, str]:
    """Return the body for one text."""
    return {"text": text, "source_lang": "EN", "target_lang": "DE"}


class Callers:
    """Callers in threads, who start at once."""

    def __init__(self, url: str, count: int, key: str = "any") -> None:
        self.answers: dict[str, list[int]] = {}
        self._url, self._key, self._stop = url, key, threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(n,)) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def answered(self) -> int:
        """Return how many texts are answered."""
        return sum(tries[-1:] == [200] for tries in list(self.answers.values()))

    def wait_for(self, count: int) -> None:
        """Wait until so many texts are answered."""
        wait_until(lambda: self.answered() >= count, timeout_s=90, what="answers")

    def stop(self, timeout_s: float = 120) -> None:
        """Let each caller get its last answer."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout_s)

    def _call(self, number: int) -> None:
        turn = 0
        while not self._stop.is_set():
            text, turn = f"Text {number} {turn}.", turn + 1
            tries = self.answers.setdefault(text, [])
            while not tries or tries[-1] != 200:
                tries.append(post(self._url, asked(text), 30, self._key)[0])
                if tries[-1] == 0:
                    time.sleep(0.05)  # nothing listens while it starts again

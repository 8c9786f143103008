"""The gateway behind nginx with its defaults: what callers see of buffering, limits and 60 s.

usage: behind_nginx.py [--nginx nginx]

A real Kafka and Redis, one echo worker, one gateway with its defaults, and nginx (Debian's) with no
more than `proxy_pass` and `client_max_body_size`. Prints a row for each question: status and
seconds. A text that takes 40 s is held; one of 90 s is 503 by the gateway after 55 s, not 504 by
nginx after 60, and its next try finds the same job.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from started import SECRET, site

from support.processes.waiting import wait_until
from support.services.ports import free_ports

_CONFIG = """
daemon off; error_log stderr; pid {folder}/pid; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 2m;
    location / {{ proxy_pass {url}; }}
  }}
}}
"""


def ask(url: str, body: bytes) -> tuple[int, bytes, float]:
    """Return status, answer and seconds."""
    headers = {"Authorization": f"DeepL-Auth-Key {SECRET}", "Content-Type": "application/json"}
    began = time.monotonic()
    try:
        request = urllib.request.Request(f"{url}/v2/translate", body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            found = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        found = error.code, error.read()
    return *found, time.monotonic() - began


def _asked(text: str) -> bytes:
    return json.dumps({"text": text, "source_lang": "EN", "target_lang": "DE"}).encode()


def main() -> None:
    """Start everything, ask, and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nginx", default="nginx")
    options = parser.parse_args()
    questions = {
        "one text": _asked("Hello."),
        "512 texts": json.dumps({"text": [f"Text {n}." for n in range(512)], "source_lang": "EN",
                                 "target_lang": "DE"}).encode(),
        "1 MiB less 1 KiB": _asked("Some words. " * ((1 << 20) // 12 - 100)),
        "1.5 MiB": b" " * (3 << 19),
        "40 s": _asked("#!sleep 40\nHello."),
        "90 s": _asked("#!sleep 90\nHello."),
    }  # fmt: skip
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with site("gateway-nginx") as started, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)  # nginx runs as another user
        file = Path(folder) / "nginx.conf"
        file.write_text(_CONFIG.format(folder=folder, port=port, url=started.gateway.url))
        nginx = subprocess.Popen([options.nginx, "-c", str(file)])
        try:
            wait_until(lambda: _serves(url), timeout_s=30, what="nginx")
            with ThreadPoolExecutor(len(questions)) as pool:
                found = pool.map(lambda body: ask(url, body), questions.values())
                for name, (status, said, seconds) in zip(questions, found, strict=True):
                    print(json.dumps({name: status, "seconds": round(seconds, 1),
                                      "json": said[:1] == b"{"}), flush=True)  # fmt: skip
            status, _, seconds = ask(url, questions["90 s"])
            print(json.dumps({"90 s, again": status, "seconds": round(seconds, 1)}))
        finally:
            nginx.terminate()
            nginx.wait()


def _serves(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    main()

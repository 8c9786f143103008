"""A real Prometheus for tests, on a free port of this machine, with the product's alerts."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from support.processes.child_process import ChildProcess
from support.services.ports import free_port

_CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: {rules}
scrape_configs:
  - job_name: dragoman
    static_configs: [{{targets: {targets}, labels: {{dragoman: worker}}}}]
"""


class Prometheus(ChildProcess):
    """A server that scrapes `targets` (`HOST:PORT`) once per second and keeps all in `folder`."""

    def __init__(self, folder: Path, targets: Sequence[str], rules: Sequence[Path] = ()) -> None:
        self.port = free_port()
        config = folder / "prometheus.yml"
        names = json.dumps([str(rule) for rule in rules])
        config.write_text(_CONFIG.format(rules=names, targets=json.dumps(list(targets))))
        binary = shutil.which("prometheus")
        if binary is None:
            raise RuntimeError("prometheus is not installed: make services")
        argv = [
            binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        super().__init__(argv, log=folder / "prometheus.log")

    def ready(self) -> Self:
        """Wait until it answers queries."""
        self.wait_for(self._is_ready, timeout_s=60, what="/-/ready")
        return self

    def _is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self.port}/-/ready"
            with urllib.request.urlopen(url, timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an expression now. Raises ValueError with Prometheus' message."""
        data = self._get("query", query=expression)
        result: list[dict[str, Any]] = data["result"]
        return result

    def query_range(self, expression: str, start: float, end: float) -> list[dict[str, Any]]:
        """Return the series of an expression once per second from `start` to `end`."""
        data = self._get("query_range", query=expression, start=start, end=end, step=1)
        result: list[dict[str, Any]] = data["result"]
        return result

    def rules(self) -> list[dict[str, Any]]:
        """Return the state of every rule."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, page: str, **arguments: Any) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{page}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from None

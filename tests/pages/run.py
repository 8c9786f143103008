"""The programs of the pages for Java and Node, built and run: `make pages-suites`.

They run as printed on a real Kafka, a real Redis and a worker with the echo engine; only their
addresses are those of this run. The packages come from their registries, so this is no part of the
tests. The program in Go is: `tests/integration/test_submit_from_go.py`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

_PAGES: Final = Path(__file__).parents[2] / "docs" / "how-to"
_BUILD: Final = Path("build/pages-suites")
_NEEDS: Final = {"java": ("java", "mvn"), "node": ("node", "npm")}
_FILE: Final = re.compile(r"\A(?://|<!--) (\S+)")


def main() -> int:
    """Run the programs, print what was found, and return the exit status."""
    missing = [each for names in _NEEDS.values() for each in names if shutil.which(each) is None]
    if missing:
        print(f"make pages-suites needs {', '.join(missing)}", file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory() as name,
        KafkaBroker() as kafka,
        RedisServer(binary=str(shutil.which("redis-server"))) as redis,
    ):
        topic = kafka.create_topic("pages", 4, None)
        kafka.create_topic(f"{topic}-dead", 1, None)
        with WorkerProcess(
            Path(name), kafka=kafka.bootstrap, redis=redis.url, topic=topic
        ) as worker:
            worker.ready()
            addresses = {
                "127.0.0.1:9092": kafka.bootstrap,
                "redis://127.0.0.1:6379/0": redis.url,
                "dragoman.jobs": topic,
            }
            good = [_runs(language, addresses) for language in _NEEDS]
            return 0 if all(good) else 1


def _runs(language: str, addresses: dict[str, str]) -> bool:
    page = (_PAGES / f"submit-from-{language}.md").read_text(encoding="utf-8")
    folder = _BUILD / language
    shutil.rmtree(folder, ignore_errors=True)
    for block in re.findall(r"```(?:java|js|xml)\n(.*?)```", page, re.DOTALL):
        for printed, actual in addresses.items():
            block = block.replace(f'"{printed}"', f'"{actual}"')  # noqa: PLW2901
        found = _FILE.match(block)
        assert found is not None, "the first line of a block names its file"
        place = folder / found[1]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(block, encoding="utf-8")
    [console] = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    commands = re.findall(r"^\$ (.*)$", console, re.MULTILINE)
    shown = "".join(line for line in console.splitlines(keepends=True) if not line.startswith("$"))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join([f"{commands[0]} >&2", *commands[1:]])],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    good = (done.returncode, done.stdout) == (0, shown)
    print(f"{language}:", "as printed" if good else f"{done.stdout}{done.stderr}")
    return good


if __name__ == "__main__":
    sys.exit(main())

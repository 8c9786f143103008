"""A box on which everything is killed while rows are translated: rows lost, jobs poisoned.

usage: box_kills.py --rows 150000 [--every 30] [--times 5]

First worker, Redis and client of a live box, `--times` each in turn, then its broker once, which
ends the box; both commands are given again. Then the same rows by one command with a box of its
own, of which all processes are killed `--times` in a row. Between two kills pass `--every` seconds
in which rows are translated. The echo engine answers 256 rows/s, so that a run lasts.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.processes.box_process import BoxPart, BoxProcess
from support.processes.child_process import ChildProcess, command
from support.processes.forked_command import run_forked

PACED = {
    "DRAGOMAN_ENGINE__ECHO__LATENCY_S": "0.5",
    "DRAGOMAN_ENGINE__OPTIONS": '{"max_num_seqs": 128}',
}
PARTS: tuple[BoxPart, ...] = ("worker", "redis")
ECHO = ("--engine", "echo")


class Run:
    """One output folder, and the command that fills it."""

    def __init__(self, folder: Path, name: str, rows: int) -> None:
        self.folder, self.name, self.rows = folder, name, rows
        self.client = self._new()
        self.began = time.monotonic()

    def _new(self) -> ChildProcess:
        argv = command("dragoman", "translate", str(self.folder / "rows.jsonl"), "--field", "text",
                       "--to", "de", "--out", str(self.folder / self.name), *ECHO,
                       "--data", str(self.folder / f"data-{self.name}"))  # fmt: skip
        env = {"TMPDIR": str(self.folder), "XDG_RUNTIME_DIR": "", **PACED}
        return ChildProcess(argv, log=self.folder / f"client-{self.name}", env=env).start()

    def again(self) -> None:
        """Give the command again."""
        self.client = self._new()

    def told(self) -> list[str]:
        """Return what the client has told of its progress: `512/8,000 segments` each time."""
        return re.findall(r"[\d,]+/[\d,]+ segments", self.client.output)

    def progress(self, seconds: float) -> None:
        """Wait until rows came for so many seconds, counted from the first that the client told."""
        since = None
        while since is None or time.monotonic() - since < seconds:
            seen = len(self.told())
            while len(self.told()) == seen:
                if not self.client.running:
                    raise SystemExit(f"the rows were too few: {self.client.output[-2000:]}")
                time.sleep(0.2)
            since = since or time.monotonic()

    def say(self, what: str) -> None:
        """Print what happens, with seconds and rows."""
        took = time.monotonic() - self.began
        print(f"{took:6.0f} s  {self.told()[-1]}  {what}", flush=True)

    def end(self) -> dict[str, object]:
        """Wait for the end; return exit status, lost rows, and failures of the report."""
        status = self.client.wait(timeout_s=1_800)
        wanted = (self.folder / "rows.jsonl").read_text().splitlines()
        made = (self.folder / self.name / "de" / "rows.jsonl").read_text().splitlines()
        pairs = zip(wanted, made, strict=True)
        lost = sum(json.loads(b)["text"] != f"[de] {json.loads(a)['text']}" for a, b in pairs)
        report = json.loads((self.folder / self.name / "report.json").read_text())
        codes = sorted({issue["code"] for each in report["documents"]
                        for issue in each.get("issues", ())})  # fmt: skip
        return {"exit": status, "rows": len(made), "lost": lost, "codes": codes}


def parts(folder: Path, rows: int, every: float, times: int) -> None:
    """Kill worker, Redis and client in turn, and the broker once."""
    box = BoxProcess(folder, *ECHO, data="data-parts", **PACED)
    with box:
        box.reached()
        run = Run(folder, "parts", rows)
        for number in range(times):
            for part in PARTS:
                run.progress(every)
                run.say(f"kill -9 {part} ({number + 1})")
                box.kill_part(part)
            run.progress(every)
            run.say(f"kill -9 client ({number + 1})")
            run.client.kill()
            run.again()
        run.progress(every)
        run.say("kill -9 broker")
        box.kill_part("broker")
        status = box.wait(timeout_s=60)
        run.say(f"the box ended with {status}: {box.errors.splitlines()[-1]}")
        run.client.kill()
    with BoxProcess(folder, *ECHO, data="data-parts", **PACED) as box:
        box.ready(1)
        run.again()
        ended = run.end()
        found = run_forked("dragoman", "dead-letters", "list", env=box.env).stdout.splitlines()
        run.say(json.dumps({**ended, "dead letters": len(found)}))


def whole(folder: Path, rows: int, every: float, times: int) -> None:
    """Kill every process of a command with a box of its own."""
    run = Run(folder, "whole", rows)
    for number in range(times):
        run.progress(every)
        run.say(f"kill -9 of everything ({number + 1})")
        own = psutil.Process(run.client.pid)
        every_process = [own, *own.children(recursive=True)]
        for each in every_process:
            each.send_signal(signal.SIGKILL)
        run.client.wait(timeout_s=20)
        psutil.wait_procs(every_process, timeout=30)
        run.again()
    run.say(json.dumps(run.end()))


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=150_000)
    parser.add_argument("--every", type=float, default=30.0)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", choices=["parts", "whole"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        lines = (json.dumps({"text": f"Row number {n}."}) for n in range(given.rows))
        (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
        for kind, act in {"parts": parts, "whole": whole}.items():
            if given.only in {None, kind}:
                print(f"--- {kind}", flush=True)
                act(folder, given.rows, given.every, given.times)


if __name__ == "__main__":
    main()

"""Where the main thread of a worker's replica spends its time, as a picture.

usage: main_thread.py NAME=STACKS.raw ... --out PICTURE.svg

A plan of strategies/run.py whose run has `"profile": "loop"` writes `profile-loop-NAME.raw` beside
its rows, by `py-spy record --format raw --threads` on the replica for the time of the run
(py-spy is a package of its own, and needs the right to trace a process). A sample counts for the
innermost frame that belongs to somebody: vLLM, planning, Redis, Kafka, the rest of Dragoman, or the
event loop. Shares are of the samples in which the thread ran; prints them, and draws one bar per
file. Needs matplotlib.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Final

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "vLLM's front end": ("vllm/",),
    "planning": (
        "dragoman_worker/prompts/",
        "dragoman_worker/job/planner",
        "dragoman_worker/job/requests",
        "dragoman_worker/job/plan",
        "dragoman_worker/job/output_budget",
        "dragoman_text/",
        "transformers/",
        "tokenizers/",
        "jinja2/",
    ),
    "Redis": ("redis/", "hiredis/", "dragoman_worker/stores/"),
    "Kafka": ("aiokafka/", "dragoman_worker/kafka/", "dragoman_connections/kafka"),
    "the rest of Dragoman": ("dragoman_",),
}
LOOP: Final = "event loop and other"
COLOURS: Final = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#bbbbbb")


def part_of(stack: list[str]) -> str:
    """Return whose sample a stack is, outermost frame first.

    The frames that started the event loop stand in every sample and say nothing.
    """
    below = max((n for n, frame in enumerate(stack) if "asyncio/runners" in frame), default=-1)
    for frame in reversed(stack[below + 1 :]):
        for part, places in PARTS.items():
            if any(place in frame for place in places):
                return part
    return LOOP


def shares(file: Path) -> dict[str, float]:
    """Return each part's share of the main thread's samples. Raises SystemExit without any."""
    found: Counter[str] = Counter()
    for line in file.read_text(encoding="utf-8").splitlines():
        text, _, count = line.rpartition(" ")
        thread, *stack = text.split(";")
        if "MainThread" in thread:
            found[part_of(stack)] += int(count)
    if not found:
        raise SystemExit(f"{file}: no sample of a main thread")
    return {part: found[part] / found.total() for part in (*PARTS, LOOP)}


def draw(rows: dict[str, dict[str, float]], out: Path) -> None:
    """Draw one bar per file."""
    mpl.rcParams["svg.hashsalt"] = "dragoman"
    figure, axes = plt.subplots(figsize=(8, 1.1 + 0.7 * len(rows)), layout="constrained")
    for place, name in enumerate(reversed(rows)):
        left = 0.0
        for part, colour in zip((*PARTS, LOOP), COLOURS, strict=True):
            share = rows[name][part]
            axes.barh(place, share, left=left, color=colour, label=part if not place else None)
            if share >= 0.04:
                axes.text(left + share / 2, place, f"{share:.0%}", ha="center", va="center")
            left += share
    axes.set_yticks(range(len(rows)), list(reversed(rows)))
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes.set_xlabel("of the samples in which the main thread ran")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", metavar="NAME=STACKS.raw")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    pairs = (given.rpartition("=") for given in arguments.files)
    rows = {name or Path(file).stem: shares(Path(file)) for name, _, file in pairs}
    for name, found in rows.items():
        print(name, ", ".join(f"{part} {share:.1%}" for part, share in found.items()), sep=": ")
    draw(rows, arguments.out)


if __name__ == "__main__":
    main()

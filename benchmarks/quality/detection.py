"""Detection of planted errors by the quality gates, as the first answer of a job at `basic`.

usage: detection.py --tsv FILE ... [--ntrex DIR] [--flores DIR] [--po DIR] [--errors 200]
                    [--only WORD] [--list] [--show 5] [--out DIR]

Prints per kind the share of answers that fail, that are warned of, that are `ok`, and that cleaning
or a repair restores. A translation with findings of its own is not damaged. Texts of several
sentences, and kinds that need a text in a third language, want whole sets: no `--pairs`.
`--out` writes detection.json and detection.md.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corpora import add_options, sampled
from judging import judged, warm
from pairs import Pair
from planted import GROUPS
from planting import Kind, Material, Planted


@dataclass
class Row:
    """How the answers of one kind were judged."""

    group: str
    kind: Kind
    verdicts: Counter[str] = field(default_factory=Counter)
    gates: Counter[str] = field(default_factory=Counter)
    languages: dict[str, Counter[str]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    @property
    def planted(self) -> int:
        """Answers with the error."""
        return self.verdicts.total()

    def add(self, planted: Planted) -> None:
        """Judge one answer."""
        found = judged(planted.good, planted.bad, joined=planted.joined)
        verdict = found.verdict
        if found.judgement.text.strip() == planted.good.target.strip() and not self.kind.right:
            verdict = "restored"
        self.verdicts[verdict] += 1
        self.languages.setdefault(planted.good.target_lang, Counter())[verdict] += 1
        self.gates.update(
            {each.gate for each in found.judgement.findings if each.severity != "fixed"}
        )
        if (verdict != "ok") == self.kind.right and verdict != "restored":
            good = planted.good
            gates = ", ".join(f"{each.gate}: {each.detail}" for each in found.judgement.findings)
            texts = f"{good.source!r}\n    {planted.bad!r}"
            self.missed.append(f"[{good.target_lang}] {gates}\n    {texts}")

    def share(self, verdict: str) -> float:
        """Return the share of a verdict in per cent."""
        return 100 * self.verdicts[verdict] / max(1, self.planted)

    def as_json(self) -> dict[str, object]:
        """Return the row without its texts."""
        kind = self.kind
        return {
            "group": self.group,
            "kind": kind.name,
            "held_out": kind.held_out,
            "right": kind.right,
            "planted": self.planted,
            "verdicts": self.verdicts,
            "gates": self.gates,
            "languages": self.languages,
        }


def detected(group: str, kind: Kind, material: Material, errors: int, seed: int) -> Row:
    """Plant up to that many errors of one kind, and judge them."""
    chance = random.Random(f"{seed} {kind.name}")
    row = Row(group, kind)
    seen: set[Planted] = set()
    for pairs in material.groups(kind.base, kind.size):
        planted = kind.plant(pairs, chance, material)
        if planted is None or planted in seen:
            continue
        seen.add(planted)
        if _is_fair(kind, pairs, planted):
            row.add(planted)
            if row.planted >= errors:
                break
    return row


def _is_fair(kind: Kind, pairs: Sequence[Pair], planted: Planted) -> bool:
    """Return whether the gates have nothing against the translations themselves."""
    if kind.right:
        return all(judged(pair, pair.target).verdict == "ok" for pair in pairs)
    good = planted.good
    return (
        planted.bad.strip() != good.target.strip()
        and judged(good, good.target, joined=planted.joined).verdict == "ok"
    )


_COLUMNS = ("fail", "warn", "ok", "restored")


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a table per group."""
    lines: list[str] = []
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            lines += [
                f"\n## {group}\n",
                "| kind | planted | fail % | warn % | **ok %** | restored % | gates |",
                "|---|--:|--:|--:|--:|--:|---|",
            ]
        shares = " | ".join(f"{row.share(name):.1f}" for name in _COLUMNS)
        gates = ", ".join(f"{gate} {number}" for gate, number in row.gates.most_common(4))
        name = f"{row.kind.name} (held out)" if row.kind.held_out else row.kind.name
        lines.append(f"| {name.replace('|', chr(92) + '|')} | {row.planted} | {shares} | {gates} |")
    return "\n".join(lines).lstrip() + "\n"


def print_row(row: Row, show: int) -> None:
    """Print one kind, and examples of what was missed."""
    shares = "  ".join(f"{name} {row.share(name):5.1f}" for name in _COLUMNS)
    gates = ", ".join(f"{gate} {number}" for gate, number in row.gates.most_common(3))
    name = f"{row.kind.name}{' (held out)' if row.kind.held_out else ''}"
    print(f"{name:54}{row.planted:5}  {shares}  {gates}", flush=True)
    chosen = random.Random(1).sample(row.missed, min(show, len(row.missed)))
    for text in chosen if not row.kind.held_out else ():
        print(f"    {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    parser.add_argument("--errors", type=int, default=200)
    parser.add_argument("--show", type=int, default=0, help="never shows wordings held out")
    parser.add_argument("--only", nargs="*", default=[""], help="words of the kinds' names")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    kinds = [
        (group, kind)
        for group, members in GROUPS.items()
        for kind in members
        if any(word.lower() in f"{group} {kind.name}".lower() for word in given.only)
    ]
    if given.list:
        print("\n".join(f"{group:10}{kind.name}" for group, kind in kinds))
        return
    warm()
    material = Material(sampled(given), random.Random(given.seed))
    rows = []
    for group, kind in kinds:
        rows.append(detected(group, kind, material, given.errors, given.seed))
        print_row(rows[-1], given.show)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        table = [row.as_json() for row in rows]
        (given.out / "detection.json").write_text(json.dumps(table, indent=1) + "\n")
        (given.out / "detection.md").write_text(markdown(rows))


if __name__ == "__main__":
    main()

"""False alarms of the quality gates on human translations, by gate, corpus and language.

usage: false_alarms.py --ntrex DIR [--flores DIR] [--wmt DIR] [--po DIR] [--tsv FILE ...]
                       [--catalogues DIR] [--tatoeba DIR] [--help-pages DIR]
                       [--languages de ja] [--pairs 10000] [--gate NAME] [--show 5] [--out DIR]

Every pair is judged as the first answer of a job at `basic`, after cleaning. `fail` counts every
gate, `hard` only those that fail a second answer too. `--show` prints that many examples per gate
and severity. `--out` writes false-alarms.json and false-alarms.md.

With `--wmt-systems DIR` the answers come from real systems, and a finding may be right.
`--sample 200` writes that many, as many of each gate, to flagged.tsv, to be read by eye.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from corpora import add_options, sampled
from judging import Judged, judged, warm
from pairs import Pair
from public_sets import ASKED, escaped

from dragoman_text.spans import is_translatable

_GROUPS = {
    "all": lambda tag: True,
    "asked": lambda tag: tag in ASKED,
    "asked, not am": lambda tag: tag in ASKED and tag != "am",
}


@dataclass
class Row:
    """What the gates say of the pairs of one corpus and language."""

    pairs: int = 0
    fail: int = 0
    hard: int = 0
    warn: int = 0
    fixed: int = 0
    gates: Counter[str] = field(default_factory=Counter)
    """Findings by ``gate`` and ``gate?``: those that fail and those that warn."""

    def add(self, found: Judged) -> None:
        """Count one pair."""
        self.pairs += 1
        self.fail += found.verdict == "fail"
        self.hard += found.is_hard
        self.warn += found.verdict == "warn"
        self.fixed += bool(found.findings("fixed"))
        self.gates.update(each.gate for each in found.findings("fail"))
        self.gates.update(f"{each.gate}?" for each in found.findings("warn"))

    def merge(self, other: Row) -> None:
        """Add the counts of another row."""
        for name in ("pairs", "fail", "hard", "warn", "fixed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.gates += other.gates


Table = Mapping[tuple[str, str], Row]
"""Rows by corpus and target language."""


@dataclass(frozen=True, slots=True)
class Example:
    """One finding about one pair."""

    corpus: str
    language: str
    gate: str
    severity: str
    detail: str
    source: str
    target: str

    def __str__(self) -> str:
        return f"[{self.language}] {self.detail}\n    {self.source!r}\n    {self.target!r}"


def counted(pairs: Iterable[Pair]) -> tuple[Table, list[Example], float]:
    """Return the rows, all findings, and the µs per pair."""
    warm()
    table: dict[tuple[str, str], Row] = defaultdict(Row)
    examples: list[Example] = []
    started = time.process_time()
    for pair in pairs:
        if is_translatable(pair.source):
            found = judged(pair, pair.target)
            table[pair.corpus, pair.target_lang].add(found)
            examples += _examples(pair, found)
    total = sum(row.pairs for row in table.values())
    return table, examples, (time.process_time() - started) / max(1, total) * 1e6


def _examples(pair: Pair, found: Judged) -> list[Example]:
    return [
        Example(
            pair.corpus,
            f"{pair.source_lang}>{pair.target_lang}",
            each.gate,
            each.severity,
            each.detail,
            pair.source,
            pair.target,
        )
        for each in found.judgement.findings
    ]


def groups(table: Table) -> dict[tuple[str, str], Row]:
    """Return the sums per corpus over all languages, and over those of the goals."""
    sums: dict[tuple[str, str], Row] = defaultdict(Row)
    for (corpus, language), row in sorted(table.items()):
        for name, belongs in _GROUPS.items():
            if belongs(language):
                sums[corpus, name].merge(row)
    return sums


def markdown(table: Table) -> str:
    """Return the sums and the languages, those with most failures first, as tables."""
    parts = [_markdown("Sums", groups(table).items())]
    for corpus in sorted({corpus for corpus, _ in table}):
        rows = [(key, row) for key, row in table.items() if key[0] == corpus]
        rows.sort(key=lambda each: (-each[1].fail / each[1].pairs, each[0]))
        parts.append(_markdown(corpus, rows))
    return "\n".join(parts)


def _markdown(title: str, rows: Iterable[tuple[tuple[str, str], Row]]) -> str:
    lines = [
        f"## {title}\n",
        "| set | language | pairs | fail % | hard % | warn % | gates (`?` warns) |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for (corpus, language), row in rows:
        shares = " | ".join(f"{100 * n / row.pairs:.3f}" for n in (row.fail, row.hard, row.warn))
        gates = ", ".join(f"{gate} {n}" for gate, n in row.gates.most_common())
        lines.append(f"| {corpus} | {language} | {row.pairs:,} | {shares} | {gates} |")
    return "\n".join(lines) + "\n"


def _by_kind(
    examples: Iterable[Example], *, corpora: bool
) -> list[tuple[tuple[str, ...], list[Example]]]:
    kinds: dict[tuple[str, ...], list[Example]] = defaultdict(list)
    for each in examples:
        kinds[(each.gate, each.severity, *([each.corpus] if corpora else []))].append(each)
    return sorted(kinds.items())


def show(examples: Iterable[Example], most: int) -> None:
    """Print random examples of each gate, severity and corpus."""
    for key, found in _by_kind(examples, corpora=True):
        print("\n#", *key, len(found))
        for each in random.Random(1).sample(found, min(most, len(found))):
            print(each)


def sample(examples: Iterable[Example], number: int, seed: int) -> list[Example]:
    """Return that many findings that fail or warn, as many of each gate and severity."""
    chance = random.Random(seed)
    kinds = [
        chance.sample(found, len(found))
        for (_gate, severity), found in _by_kind(examples, corpora=False)
        if severity != "fixed"
    ]
    turns = [each for turn in zip_longest(*kinds) for each in turn if each is not None]
    return sorted(turns[:number], key=lambda each: (each.gate, each.severity, each.corpus))


def write_sample(chosen: Iterable[Example], place: Path) -> None:
    """Write findings as a table: gate, severity, system, languages, detail, source, answer."""
    rows = ("\t".join(map(escaped, _cells(each))) for each in chosen)
    place.write_text("".join(f"{row}\n" for row in rows))


def _cells(each: Example) -> tuple[str, ...]:
    return (
        each.gate, each.severity, each.corpus, each.language, each.detail, each.source, each.target,
    )  # fmt: skip


def write(table: Table, folder: Path) -> None:
    """Write the tables for people and for programs."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"corpus": corpus, "language": language, **vars(row)}
        for (corpus, language), row in sorted(table.items())
    ]
    (folder / "false-alarms.json").write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "false-alarms.md").write_text(markdown(table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--gate", help="show examples of this gate alone")
    parser.add_argument("--sample", type=int, default=0, help="findings in flagged.tsv")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    table, examples, cost = counted(sampled(given))
    print(markdown(table))
    print(f"{sum(row.pairs for row in table.values()):,} pairs, {cost:.0f} µs of one core per pair")
    wanted = [each for each in examples if given.gate in {None, each.gate}]
    if given.show:
        show(wanted, given.show)
    if given.out:
        write(table, given.out)
    if given.out and given.sample:
        write_sample(sample(wanted, given.sample, given.seed), given.out / "flagged.tsv")


if __name__ == "__main__":
    main()

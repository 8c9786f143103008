"""False alarms of the quality gates on human translations, by gate, corpus and language.

usage: false_alarms.py --catalogues /usr/share/locale [--tatoeba DIR] [--help-pages DIR]
                       [--pairs 10000] [--show 5] [--out DIR]

Prints, and with --out writes, one row per gate and corpus: findings by severity per 100,000 pairs.
`--show` prints that many examples per gate and severity.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from pathlib import Path

from corpora import Pair, add_options, sampled

from dragoman_text.detection import LanguageDetector
from dragoman_text.gates import judge
from dragoman_text.spans import is_translatable
from dragoman_text.verdicts import Candidate, Finding

Key = tuple[str, str, str, str]
"""Corpus, target language, gate, severity."""


def judged(
    pairs: list[Pair],
) -> tuple[Counter[tuple[str, str]], Counter[Key], dict[Key, list[str]], float]:
    """Return the pairs per corpus and language, the findings, examples, and µs per pair."""
    detect = LanguageDetector().detect
    detect("Load the model.")
    totals: Counter[tuple[str, str]] = Counter()
    counts: Counter[Key] = Counter()
    examples: dict[Key, list[str]] = defaultdict(list)
    started = time.process_time()
    for pair in pairs:
        if not is_translatable(pair.source):
            continue
        totals[pair.corpus, pair.target_lang] += 1
        candidate = Candidate(pair.source, pair.target, pair.target_lang, pair.source_lang)
        judgement = judge(candidate, detect=detect)
        findings = judgement.findings
        if judgement.text != pair.target and not any(each.severity == "fixed" for each in findings):
            findings += (Finding("unreported", "fixed", judgement.text),)
        for finding in findings:
            key = (pair.corpus, pair.target_lang, finding.gate, finding.severity)
            counts[key] += 1
            examples[key].append(
                f"{finding.detail}\n    {pair.source!r}\n    {pair.target!r}"
                + (f"\n    {judgement.text!r}" if finding.severity == "fixed" else "")
            )
    return totals, counts, examples, (time.process_time() - started) / max(1, totals.total()) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--gate", help="show examples of this gate alone")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    totals, counts, examples, cost = judged(sampled(given))
    print_rates(totals, counts)
    print(f"\n{totals.total():,} pairs, {cost:.0f} µs of one core per pair")
    if given.show:
        show(examples, given.show, given.gate)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        rows = [
            {"corpus": key[0], "language": key[1], "gate": key[2], "severity": key[3], "found": n}
            for key, n in sorted(counts.items())
        ]
        pairs = [{"corpus": c, "language": tag, "pairs": n} for (c, tag), n in totals.items()]
        (given.out / "false-alarms.json").write_text(
            json.dumps({"pairs": pairs, "findings": rows}, indent=1) + "\n"
        )


def print_rates(totals: Counter[tuple[str, str]], counts: Counter[Key]) -> None:
    """Print findings per cent of pairs by corpus, and the three languages with most."""
    corpora: Counter[str] = Counter()
    for (corpus, _language), pairs in totals.items():
        corpora[corpus] += pairs
    rows: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for (corpus, language, gate, severity), found in counts.items():
        rows[gate, severity, corpus][language] += found
    for (gate, severity, corpus), languages in sorted(rows.items()):
        rate = 100 * languages.total() / corpora[corpus]
        worst = sorted(languages, key=lambda tag: -languages[tag] / totals[corpus, tag])[:4]
        most = ", ".join(f"{tag} {100 * languages[tag] / totals[corpus, tag]:.2f}" for tag in worst)
        total = f"{languages.total()} of {corpora[corpus]:,}"
        print(f"{gate:13}{severity:6}{corpus:11}{rate:8.3f} %  {total:20} {most}")


def show(examples: dict[Key, list[str]], most: int, gate: str | None) -> None:
    """Print random examples of each gate, severity and corpus."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (corpus, language, name, severity), texts in examples.items():
        if gate in {None, name}:
            groups[name, severity, corpus] += [f"[{language}] {text}" for text in texts]
    for key, texts in sorted(groups.items()):
        print("\n#", *key)
        for text in random.Random(1).sample(texts, min(most, len(texts))):
            print(text)


if __name__ == "__main__":
    main()

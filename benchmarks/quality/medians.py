"""Medians of the length ratio of human translations from English, for the gate `length`.

usage: medians.py --catalogues /usr/share/locale [--tatoeba DIR] [--help-pages DIR] [--pairs N]

Prints the median of characters in the translation per character of its English source, for sources
of at least 40 characters outside placeholders, links, code and tags.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from statistics import median, quantiles

from corpora import add_options, sampled

from dragoman_text.gates.prose import prose


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pair in sampled(parser.parse_args()):
        source, target = prose(pair.source), prose(pair.target)
        if pair.source_lang == "en" and len(source) >= 40 and target:
            ratios[pair.target_lang, pair.corpus].append(len(target) / len(source))
    for (language, corpus), own in sorted(ratios.items()):
        if len(own) > 20:
            low, high = quantiles(own, n=100)[0], quantiles(own, n=100)[98]
            print(f"{language:8}{corpus:11}{len(own):8,}  {median(own):.2f}  {low:.2f}-{high:.2f}")


if __name__ == "__main__":
    main()

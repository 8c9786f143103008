"""CPU seconds of every format at doubling sizes: ordinary documents, and pieces repeated in them.

    growth.py [FORMAT...] [--odd 60] [--kib 64] [--seed 0]

A document is read, written with a mark before each text, and read back. An odd document repeats a
piece of an ordinary one, or of markup, until it has the size. Sizes are 1, 2, 4 and 8 times
`--kib`; named is a document whose seconds grow more than 2.4-fold by the last doubling
in all of three measurements: at a smaller size another delimiter or encoding may be recognised.
Exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ordinary import ORDINARY, Ordinary

from dragoman_documents import registry
from dragoman_documents.codec import Codec, DocumentError, Options
from dragoman_documents.read_back import SkeletonDiffers, differing, usable

MOST: Final = 2.4
LEAST_S: Final = 0.1
"""Shorter times are not compared: they hold more noise than work."""
LONGEST_S: Final = 20.0
"""A document that takes longer is not made larger."""
OPTIONS: Final = Options("de", "en")
PIECES: Final = (
    *"<>&\"'{}[]()*_`#|~!$%^=+-:;,.\\/?@\t\r\n\0 x9",
    *("<a>", "</a>", "<!--", "-->", "]]>", "<![CDATA[", "<g1>", "</g1>", "<x1/>", "&amp;", "&#x"),
    *(
        "\n\n",
        "\r\n",
        "> ",
        "- ",
        "\n1. ",
        "**",
        "__",
        "~~",
        "``",
        "```\n",
        "$$",
        "[a](",
        "![",
        "[^",
    ),
    *(
        "{{",
        "}}",
        "{%",
        "%}",
        "{a, plural, ",
        "one {",
        "${",
        "%(a)s",
        "\\N",
        "{\\an8}",
        "1\n",
        " \n",
    ),
    *(
        "\n00:00:01,000 --> 00:00:02,000\n",
        "\n1\n00:00:01,000 --> 00:00:02,000\nx",
        "\u2028",
        "\u202e",
    ),
    *(
        "\u4e00",
        "\u00e9",
        "\U0001f600",
        "x ",
        "x, ",
        "x. ",
        "x\n",
        "x y\n",
        "?>",
        "<?",
        "/>",
        "='",
        '="',
    ),
    *(
        "<b>",
        "</b>",
        "<p>",
        "<br>",
        "<td>",
        "\n|a|b",
        "\n    ",
        "\n:::",
        "\n+++\n",
        "\n---\n",
        "a: ",
        "a:\n ",
    ),
    *(
        "\n- a\n  ",
        "&x",
        "*/",
        "/*",
        "//",
        "\\u",
        "\\\\",
        '\\"',
        '"a": "b", ',
        '{"a":',
        "[1,",
        '","',
    ),
)
"""What is repeated besides pieces of the document itself."""


class Case(NamedTuple):
    """A document of any size."""

    what: str
    make: Callable[[int], bytes]


def main() -> None:
    arguments = _arguments()
    gc.set_threshold(100_000, 50, 50)  # as in the child of a run
    found = 0
    for name in arguments.formats or sorted(registry.ours()):
        codec, worst = registry.codec(name), 0.0
        for case in _cases(
            ORDINARY[name], random.Random(f"{arguments.seed} {name}"), arguments.odd
        ):
            growth = measured(codec, case, arguments.kib * 1024)
            worst = max(worst, growth)
            if growth > MOST:
                found += 1
                print(f"FOUND {name}: {case.what}: {growth:.2f}-fold", flush=True)
        print(f"{name}: {worst:.2f}-fold at most", flush=True)
    sys.exit(bool(found))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("formats", nargs="*")
    parser.add_argument("--odd", type=int, default=60, help="odd documents per format")
    parser.add_argument("--kib", type=int, default=64, help="size of the smallest document")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _cases(ordinary: Ordinary, rng: random.Random, odd: int) -> Iterator[Case]:
    yield Case("ordinary", lambda size: ordinary.document(ordinary.units(size)))
    body = ordinary.units(2_000)
    for _ in range(odd):
        start = rng.randrange(len(body) + 1)
        piece = rng.choice(PIECES)
        if rng.random() < 0.3:
            piece += rng.choice(PIECES)
        elif rng.random() < 0.4:
            piece = body[start : start + rng.choice((1, 2, 8, 64, 500))] or "x"
        yield Case(f"{piece!r} at {start}", _repeating(ordinary, body, start, piece))


def _repeating(ordinary: Ordinary, body: str, start: int, piece: str) -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        times = size // len(piece.encode())
        return ordinary.document(body[:start] + piece * times + body[start:])

    return make


def measured(codec: Codec, case: Case, size: int) -> float:
    """Return the growth by the last doubling, the least of three measurements if it is too much."""
    growth = _measured_once(codec, case, size)
    for _ in range(2):
        if growth > MOST:
            growth = min(growth, _measured_once(codec, case, size))
    return growth


def _measured_once(codec: Codec, case: Case, size: int) -> float:
    times: list[float] = []
    for factor in (1, 2, 4, 8):
        data = case.make(size * factor)
        began = time.process_time()
        _translated(codec, data)
        times.append(time.process_time() - began)
        if times[-1] > LONGEST_S:
            break
    return times[-1] / max(times[-2], LEAST_S) if len(times) > 1 else LONGEST_S


def _translated(codec: Codec, data: bytes) -> None:
    try:
        extraction = codec.extract(data, OPTIONS)
        texts = usable([f"[de] {each.text}" for each in extraction.segments], extraction.segments)
        output = codec.splice(data, extraction, texts, OPTIONS)
        differing(codec, output, extraction, texts, OPTIONS)
    except (DocumentError, SkeletonDiffers):
        pass


if __name__ == "__main__":
    main()

"""The same operators for the Lua scripts of Redis, by tokens: spaces, quotes and commas are free.

A command is `redis.call(...)` as a statement, a condition stands between `if` and `then`, and the
operands of a condition or of a `local` are what `and` and `or` join outside of parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mutants.breaks import Always, Break, Delete, Drop, Use, only

_TOKEN = re.compile(r"--[^\n]*|'[^']*'|\w+|[=~<>]=|\.\.|\n|[^\S\n]+|.")
_JOINS = ("and", "or")
_NO_STATEMENT_BEFORE = ("=", "(", ",", "==", "~=", "return", "not", "in", *_JOINS)

Span = tuple[int, int]
"""First and last word, the last one excluded."""


def broken(script: str, how: Break) -> str:
    """Return the script with the break. Raises ValueError."""
    tokens = [word for word in _TOKEN.findall(script) if not word.startswith("--")]
    spans, new = _places(tokens, how)
    first, last = only(spans, how)
    return "".join([*tokens[:first], new, *tokens[last:]])


def _places(tokens: Sequence[str], how: Break) -> tuple[list[Span], str]:
    match how:
        case Delete(of):
            return [span for span in _commands(tokens) if _mentions(tokens, span, of)], ""
        case Always(of, is_):
            found = [span for span in _conditions(tokens) if _mentions(tokens, span, of)]
            return found, f" {str(is_).lower()} "
        case Drop(of):
            return [span for span in _operands(tokens) if _mentions(tokens, span, of)], " "
        case Use(of, instead):
            return list(_sequences(tokens, (0, len(tokens)), of)), instead
        case _:
            raise ValueError(f"no script can be broken by {how}")


def _words(tokens: Sequence[str]) -> list[str]:
    return [word.strip("'") for word in tokens if word.strip() and word != ","]


def _sequences(tokens: Sequence[str], within: Span, of: str) -> Iterator[Span]:
    wanted = _words(_TOKEN.findall(of))
    places = [n for n in range(*within) if _words(tokens[n : n + 1])]
    for n in range(len(places) - len(wanted) + 1):
        chosen = places[n : n + len(wanted)]
        if _words([tokens[place] for place in chosen]) == wanted:
            yield chosen[0], chosen[-1] + 1


def _mentions(tokens: Sequence[str], span: Span, of: str) -> bool:
    return next(_sequences(tokens, span, of), None) is not None


def _commands(tokens: Sequence[str]) -> Iterator[Span]:
    before = ""
    for n, word in enumerate(tokens):
        if word == "redis" and before not in _NO_STATEMENT_BEFORE:
            yield n, _closing(tokens, tokens.index("(", n)) + 1
        before = word if word.strip() else before


def _conditions(tokens: Sequence[str]) -> Iterator[Span]:
    for n, word in enumerate(tokens):
        if word in {"if", "elseif"}:
            yield n + 1, tokens.index("then", n)


def _operands(tokens: Sequence[str]) -> Iterator[Span]:
    """Yield each operand with the `and` or `or` that joins it to the others."""
    for first, last in (*_conditions(tokens), *_values(tokens)):
        joins, n = [first], first
        while n < last:
            if tokens[n] == "(":
                n = _closing(tokens, n)
            elif tokens[n] in _JOINS:
                joins.append(n)
            n += 1
        if len(joins) > 1:
            yield joins[0], joins[1] + 1
            yield from zip(joins[1:], [*joins[2:], last], strict=True)


def _values(tokens: Sequence[str]) -> Iterator[Span]:
    """Yield what stands behind each `local NAME =`, up to the line that no operator continues."""
    for n, word in enumerate(tokens):
        if word == "local" and "=" in tokens[n : n + 6]:
            first = last = tokens.index("=", n) + 1
            while last < len(tokens) and not _ends_at(tokens, last):
                last += 1
            yield first, last


def _ends_at(tokens: Sequence[str], n: int) -> bool:
    following = _words(tokens[n : n + 4])
    return tokens[n] == "\n" and following[:1] != ["or"] and following[:1] != ["and"]


def _closing(tokens: Sequence[str], opening: int) -> int:
    depth = 0
    for n in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[n], 0)
        if depth == 0:
            return n
    raise ValueError("a parenthesis is not closed")

"""ICU messages as trees, and the spelling of text in them.

Quoting is that of ICU's default: an apostrophe quotes only before a brace (or `#` in a plural).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["plural", "selectordinal", "select"]
_HEAD: Final = re.compile(
    r"\s*(?P<name>[^\s{},'#]{1,100})\s*,\s*(?P<kind>plural|selectordinal|select)\s*,"
    r"(?:\s*offset:\s*(?P<offset>[0-9]{1,4}))?"
)
_SELECTOR: Final = re.compile(r"\s*(=[0-9]{1,6}|[^\s{},'=#]{1,100})\s*\{")
_END: Final = re.compile(r"\s*\}")
_PLAIN: Final = re.compile(r"[^{}'#]+")
ARGUMENT: Final = re.compile(r"\{\w{1,100}\}")
"""A simple argument, which stays in the text of a segment."""
MARK: Final = "\0"
"""Stands for the count in a text that is being spelled."""
_KEPT: Final = re.compile(rf"{ARGUMENT.pattern}|{MARK}")
_KEPT_WITH_HASH: Final = re.compile(rf"{ARGUMENT.pattern}|{MARK}|#")
_SPECIAL: Final = re.compile(r"[{}#']")
_RUN: Final = re.compile(r"'*+[{}]['{}]*+|'++")
_RUN_COUNTED: Final = re.compile(r"'*+[{}#]['{}#]*+|'++")
_BRACE: Final = re.compile(r"[{}]")
DEEPEST: Final = 12
"""Arms within arms of a message."""
_HAS_ARMS: Final = re.compile(r"\{\s*[^\s{},'#]{1,100}\s*,\s*(?:plural|selectordinal|select)\s*,")


@dataclass(frozen=True, slots=True)
class IcuText:
    """Literal text, decoded. `raw` is how it is spelled, if it is quoted."""

    text: str
    raw: str | None = None
    doubled: bool = False
    """Whether it is an apostrophe that is spelled as two."""

    @property
    def written(self) -> str:
        """Return the text as it is spelled."""
        return ("''" if self.doubled else self.text) if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class IcuArgument:
    """`{name}` or `{name, number, ...}`, as spelled."""

    raw: str


@dataclass(frozen=True, slots=True)
class IcuCount:
    """`#` in an arm of a plural."""


@dataclass(frozen=True, slots=True)
class IcuChoice:
    """A plural or select, with its arms by their selectors."""

    name: str
    kind: Kind
    offset: int
    arms: dict[str, tuple[Node, ...]]
    head: str
    """As it is spelled, up to its kind or offset."""
    openings: dict[str, str]
    """The selector of each arm as it is spelled, with its brace and the blanks before it."""
    closing: str

    def opening(self, selector: str) -> str:
        """Return the spelling of a selector; of one that is not there, like that of `other`."""
        there = self.openings.get(selector)
        return self.openings["other"].replace("other", selector) if there is None else there


Node = IcuText | IcuArgument | IcuCount | IcuChoice


class NoMessage(Exception):
    """A text that is no valid ICU message."""


def has_arms(text: str) -> bool:
    """Return whether a text may be a message with a plural or select."""
    return _HAS_ARMS.search(text) is not None


def parsed(text: str) -> tuple[Node, ...]:
    """Return the nodes of a message. Raises NoMessage."""
    parser = _Parser(text)
    nodes = parser.nodes(depth=0, counted=False)
    if parser.place != len(text):
        raise NoMessage("a closing brace without an opening one")
    return nodes


def message(text: str) -> tuple[Node, ...] | None:
    """Return the nodes of a valid message with a plural or select; None for other texts."""
    if not has_arms(text):
        return None
    try:
        return parsed(text)
    except NoMessage:
        return None


def skeleton(nodes: Iterable[Node], start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the ranges of what is no literal text: arguments, counts, heads and ends of choices.

    `start` is where the nodes begin in their text. Ranges that touch are not joined.
    """
    for node in nodes:
        if isinstance(node, IcuChoice):
            start = yield from _of_choice(node, start)
            continue
        end = start + (1 if isinstance(node, IcuCount) else len(_raw(node)))
        if not isinstance(node, IcuText):
            yield start, end
        start = end


def _of_choice(choice: IcuChoice, start: int) -> Generator[tuple[int, int], None, int]:
    """Yield the ranges of a choice; return where it ends."""
    opening = start
    place = start + len(choice.head)
    for selector, arm in choice.arms.items():
        place += len(choice.openings[selector])
        yield opening, place
        yield from skeleton(arm, place)
        opening = place = place + _length(arm)
        place += 1
    place += len(choice.closing)
    yield opening, place
    return place


def _length(nodes: Iterable[Node]) -> int:
    found = 0
    for node in nodes:
        if isinstance(node, IcuChoice):
            arms = sum(len(node.openings[key]) + _length(arm) + 1 for key, arm in node.arms.items())
            found += len(node.head) + arms + len(node.closing)
        else:
            found += 1 if isinstance(node, IcuCount) else len(_raw(node))
    return found


def sentence(nodes: Iterable[Node], selector: str, count: str = "#") -> str:
    """Return the sentence of a message for one selector: the arm `other` where there is none.

    `count` is what stands for `#`: within a plural without an offset, its argument.
    """
    found: list[str] = []
    for node in nodes:
        if isinstance(node, IcuChoice):
            arm = node.arms.get(selector, node.arms["other"])
            counted = node.kind != "select"
            inner = f"{{{node.name}}}" if counted and not node.offset else count
            found.append(sentence(arm, selector, inner))
        else:
            found.append(count if isinstance(node, IcuCount) else _raw(node))
    return "".join(found)


def choices(nodes: Iterable[Node]) -> Iterator[IcuChoice]:
    """Yield every choice of a message, those within arms too."""
    for node in nodes:
        if isinstance(node, IcuChoice):
            yield node
            for arm in node.arms.values():
                yield from choices(arm)


def has_bare_apostrophe(nodes: Iterable[Node]) -> bool:
    """Return whether an apostrophe is neither doubled nor within quotes."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, IcuChoice):
            waiting.extend(each for arm in node.arms.values() for each in arm)
        elif isinstance(node, IcuText) and node.written == "'":
            return True
    return False


def written(nodes: Iterable[Node]) -> str:
    """Return nodes without choices as they are spelled."""
    return "".join("#" if isinstance(each, IcuCount) else _raw(each) for each in nodes)


def _raw(node: IcuText | IcuArgument | IcuChoice) -> str:
    if isinstance(node, IcuText):
        return node.written
    return node.raw if isinstance(node, IcuArgument) else ""


class _Parser:
    """Reads a message from its beginning."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.place = 0

    def nodes(self, *, depth: int, counted: bool) -> tuple[Node, ...]:
        """Return the nodes up to the brace that closes an arm, or the end."""
        if depth > DEEPEST:
            raise NoMessage("arms are nested too deeply")
        found: list[Node] = []
        while self.place < len(self._text) and (at := self._text[self.place]) != "}":
            if plain := _PLAIN.match(self._text, self.place):
                found.append(IcuText(plain[0]))
                self.place = plain.end()
            elif at == "{":
                found.append(self._braces(depth, counted=counted))
            elif at == "'":
                found.append(self._apostrophe("{}#" if counted else "{}"))
            else:
                found.append(IcuCount() if counted else IcuText("#"))
                self.place += 1
        return tuple(found)

    def _apostrophe(self, special: str) -> IcuText:
        text, start = self._text, self.place
        following = text[start + 1 : start + 2]
        if following == "'":
            self.place += 2
            return IcuText("'", doubled=True)
        if not following or following not in special:
            self.place += 1
            return IcuText("'")
        end = start + 1
        while (end := text.find("'", end)) >= 0 and text.startswith("''", end):
            end += 2
        if end < 0:
            raise NoMessage("a quote is not closed")
        self.place = end + 1
        return IcuText(text[start + 1 : end].replace("''", "'"), text[start : end + 1])

    def _braces(self, depth: int, *, counted: bool) -> Node:
        start = self.place
        head = _HEAD.match(self._text, start + 1)
        if head is None:
            end = _closing(self._text, start)
            self.place = end + 1
            return IcuArgument(self._text[start : self.place])
        kind: Kind = (
            "select" if head["kind"] == "select"
            else "plural" if head["kind"] == "plural" else "selectordinal"
        )  # fmt: skip
        self.place = head.end()
        arms, openings = self._arms(depth, counted=counted or kind != "select")
        closing, offset = self._close(), int(head["offset"] or 0)
        spelled_head = self._text[start : head.end()]
        return IcuChoice(head["name"], kind, offset, arms, spelled_head, openings, closing)

    def _arms(
        self, depth: int, *, counted: bool
    ) -> tuple[dict[str, tuple[Node, ...]], dict[str, str]]:
        arms: dict[str, tuple[Node, ...]] = {}
        openings: dict[str, str] = {}
        while (selector := _SELECTOR.match(self._text, self.place)) is not None:
            self.place = selector.end()
            if selector[1] in arms:
                raise NoMessage("a selector is there twice")
            arms[selector[1]] = self.nodes(depth=depth + 1, counted=counted)
            openings[selector[1]] = selector[0]
            self._close()
        if "other" not in arms:
            raise NoMessage("the arm other is missing")
        return arms, openings

    def _close(self) -> str:
        """Read the brace that ends an arm or a choice; return it with the blanks before it."""
        end = _END.match(self._text, self.place)
        if end is None:
            raise NoMessage("an arm is not closed")
        self.place = end.end()
        return end[0]


def _closing(text: str, start: int) -> int:
    """Return where the brace closes that opens at a place; a format may have braces in it."""
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
        if depth > DEEPEST:
            break
    raise NoMessage("a brace is not closed")


def spelled(text: str, *, counted: bool, hash_counts: bool, doubled: bool) -> str:
    """Return a text as a message spells it: simple arguments and `MARK` stay, braces are quoted.

    `counted`: whether it is within a plural, where `#` is the count. `hash_counts`: whether a `#`
    of the text is that count; else it is quoted. `doubled`: whether every apostrophe is doubled,
    and not only those that could begin a quote.
    """
    kept = _KEPT_WITH_HASH if counted and hash_counts else _KEPT
    run = _RUN_COUNTED if counted else _RUN
    parts: list[str] = []
    end = 0
    for match in kept.finditer(text):
        parts += (_literal(text[end : match.start()], run, doubled=doubled), match[0])
        end = match.end()
    return "".join([*parts, _literal(text[end:], run, doubled=doubled)])


def _literal(text: str, run: re.Pattern[str], *, doubled: bool) -> str:
    """Return a text without arguments: what is special quoted, as one run with its apostrophes."""

    def quoted(match: re.Match[str]) -> str:
        inside = match[0].replace("'", "''")
        if match[0].strip("'"):
            return f"'{inside}'"
        alone = len(match[0]) == 1 and match.end() < len(text)
        return match[0] if alone and not doubled else inside

    return run.sub(quoted, text) if _SPECIAL.search(text) else text

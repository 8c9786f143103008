"""ICU messages with plurals and selects: one segment per form of the target language and choice.

`You have {n, plural, one{# file} other{# files}}` is translated as "You have 1 file" and "You have
2 files": whole sentences. Written back, the selects are outside, the plural inside, and the text
around them is in each arm: `{n, plural, one{Sie haben # Datei} other{Sie haben # Dateien}}`.

For codecs whose strings may be messages: `parsed`, then `Message.segments` and `Message.spelled`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from dragoman_documents.codec import InlineCode, Options, Segment
from dragoman_documents.inline_codes import (
    Piece,
    SingleCode,
    composed,
    fits,
    plain,
    rendered,
)
from dragoman_documents.plurals.icu.choices import Branch, Leaf, tree
from dragoman_documents.plurals.rules import restored
from dragoman_documents.spelling import Spelling
from dragoman_text import icu
from dragoman_text.icu import (
    ARGUMENT,
    MARK,
    IcuArgument,
    IcuChoice,
    IcuCount,
    IcuText,
    Node,
    NoMessage,
    has_arms,
)
from dragoman_text.spans import is_translatable

NO_MESSAGE: Final = "ICU messages that cannot be translated are left as they are"
_LONGEST: Final = 65_536
"""Characters of a message; a longer one is text that happens to look like one."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A leaf with its text as it is translated, and the number that stands for the count."""

    leaf: Leaf
    text: str
    codes: tuple[InlineCode, ...]
    number: int | None
    placeholder: str | None

    @property
    def is_segment(self) -> bool:
        """Whether it has words."""
        return is_translatable(plain(self.text))

    @property
    def number_optional(self) -> bool:
        """Whether a translation may say its number as a word."""
        return self.number is not None and self.leaf.form.is_one


@dataclass(frozen=True, slots=True)
class IcuMessage:
    """A message with arms, as the sentences of the target language."""

    root: Branch | Leaf
    sentences: tuple[_Sentence, ...]
    doubled: bool
    source: str
    """The message as its document has it."""

    @property
    def signature(self) -> str:
        """Return what no translation may change: variables, selectors, sentences without words."""
        fixed = [each.text for each in self.sentences if not each.is_segment]
        return "\0".join([*_shape(self.root), *fixed])

    def segments(self, place: str) -> tuple[Segment, ...]:
        """Return a segment per sentence that has words.

        Forms of one plural have the same place; the selectors of selects are part of it.
        """
        return tuple(_segment(each, place) for each in self.sentences if each.is_segment)

    def spelled(self, texts: Sequence[str | None]) -> str:
        """Return the message with a translation for each segment; the source where it is None.

        A translation whose tags or number do not fit is None too. A message that gets too long to
        be read as one stays as it is.
        """
        given = iter(texts)
        found = {
            each.leaf.selectors: self._spelled(each, next(given) if each.is_segment else None)
            for each in self.sentences
        }
        new = _written(self.root, found)
        return new if len(new) <= _LONGEST else self.source

    def _spelled(self, sentence: _Sentence, text: str | None) -> str:
        if text is not None and fits(text, sentence.codes) and is_translatable(plain(text)):
            core = sentence.text.strip()
            lead, _, trail = sentence.text.partition(core)
            new = self._rendered(sentence, f"{lead}{text.replace(MARK, '')}{trail}")
            if new is not None:
                return new
        return self._rendered(sentence, sentence.text) or ""

    def _rendered(self, sentence: _Sentence, text: str) -> str | None:
        if sentence.number is not None:
            marked = restored(text, sentence.number, MARK, optional=sentence.number_optional)
            if marked is None:
                return None
            text = marked

        escape = partial(
            icu.spelled,
            counted=sentence.leaf.counted,
            hash_counts=_hash_counts(sentence.leaf, sentence.number),
        )
        new = rendered(text, sentence.codes, partial(escape, doubled=self.doubled))
        nodes = sentence.leaf.nodes
        doubled = self.doubled or any(isinstance(each, IcuText) and each.doubled for each in nodes)
        spelling = Spelling(_pieces(sentence), partial(escape, doubled=doubled))
        kept = rendered(text, sentence.codes, spelling.keeping(text))
        new, kept = (each.replace(MARK, sentence.placeholder or "") for each in (new, kept))
        same = kept == new or _means_the_same(kept, new, counted=sentence.leaf.counted)
        return kept if same else new


def _pieces(sentence: _Sentence) -> Iterator[tuple[str, str]]:
    """Yield the text of a sentence without its codes, as it is and as it is spelled."""
    quotes = _quotes_are_codes(sentence.leaf, sentence.number)
    for node in sentence.leaf.nodes:
        piece = _piece(node, sentence.number, sentence.placeholder, quotes=quotes)
        if isinstance(node, IcuText) and isinstance(piece, str):
            yield node.text, node.written
        elif isinstance(piece, str):
            counts = sentence.number is not None and piece == str(sentence.number)
            yield (MARK, MARK) if counts else (piece, piece)


def _means_the_same(one: str, other: str, *, counted: bool) -> bool:
    try:
        return _flat(one, counted=counted) == _flat(other, counted=counted)
    except NoMessage:
        return False


def _flat(text: str, *, counted: bool) -> list[str]:
    """Return the texts of a sentence in an arm, and between them what is none."""
    kind = "plural" if counted else "select"
    found = [""]
    for node in _arm(icu.parsed(f"{{n,{kind},other{{{text}}}}}")):
        if isinstance(node, IcuText):
            found[-1] += node.text
        else:
            found += (icu.written([node]), "")
    return found


def _arm(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the content of the only arm of a message. Raises NoMessage if it is more."""
    if len(nodes) != 1 or not isinstance(nodes[0], IcuChoice):
        raise NoMessage("a sentence ends its arm")
    return nodes[0].arms["other"]


def parsed(text: str, options: Options) -> IcuMessage | None:
    """Return the message that a text is; None if it has no arms or is not valid ICU syntax.

    None too if its choices give more than 64 sentences, if it counts two things, or if it holds the
    character that stands for the count while a sentence is spelled.
    """
    if len(text) > _LONGEST or not has_arms(text) or MARK in text:
        return None
    try:
        nodes = icu.parsed(text)
        root = tree(nodes, options)
    except NoMessage:
        return None
    doubled = "''" in text and not icu.has_bare_apostrophe(nodes)
    return IcuMessage(root, tuple(_sentences(root, doubled=doubled)), doubled, text)


def _sentences(root: Branch | Leaf, *, doubled: bool) -> Iterator[_Sentence]:
    """Yield the sentences; those of one plural have numbers all, or none has one."""
    if isinstance(root, Leaf):
        yield _sentence(root, None, None, doubled=doubled)
        return
    arms = [arm for _, arm in root.arms]
    leaves = [arm for arm in arms if isinstance(arm, Leaf)]
    if root.choice.kind == "select" or len(leaves) < len(arms):
        for arm in arms:
            yield from _sentences(arm, doubled=doubled)
        return
    numbered = [_numbered(leaf, root, doubled=doubled) for leaf in leaves]
    complete = [each for each in numbered if each is not None]
    if len(complete) == len(leaves):
        yield from complete
        return
    for leaf in leaves:
        yield _sentence(leaf, None, None, doubled=doubled)


def _numbered(leaf: Leaf, branch: Branch, *, doubled: bool) -> _Sentence | None:
    """Return a sentence with its number; without one if it has no count; None if it has no room."""
    placeholder = _placeholder(leaf, branch)
    without = _sentence(leaf, None, None, doubled=doubled)
    if placeholder is None:
        return without if not _counts(leaf, branch) else None
    bare = without.text.replace(placeholder, " ")
    number = leaf.form.number_for(bare)
    if number is None:
        return None
    found = _sentence(leaf, number, placeholder, doubled=doubled)
    return found if restored(found.text, number, placeholder) is not None else None


def _counts(leaf: Leaf, branch: Branch) -> list[str]:
    """Return the places of the count in a sentence, as spelled."""
    own = f"{{{branch.choice.name}}}" if not branch.choice.offset else None
    found = (
        "#" if isinstance(node, IcuCount) else getattr(node, "raw", None) for node in leaf.nodes
    )
    return [each for each in found if each is not None and each in {"#", own}]


def _placeholder(leaf: Leaf, branch: Branch) -> str | None:
    found = _counts(leaf, branch)
    return found[0] if len(found) == 1 else None


def _sentence(
    leaf: Leaf, number: int | None, placeholder: str | None, *, doubled: bool
) -> _Sentence:
    quotes = _quotes_are_codes(leaf, number)
    found: list[Piece] = [_piece(node, number, placeholder, quotes=quotes) for node in leaf.nodes]
    text, codes = composed(
        found,
        lambda piece: icu.spelled(
            piece,
            counted=leaf.counted,
            hash_counts=_hash_counts(leaf, number),
            doubled=doubled,
        ),
    )
    return _Sentence(leaf, text, codes, number, placeholder)


def _piece(node: Node, number: int | None, placeholder: str | None, *, quotes: bool) -> Piece:
    match node:
        case IcuText(text, raw):
            return SingleCode(raw) if quotes and raw is not None else text
        case IcuCount():
            return "#" if number is None else str(number)
        case IcuArgument(raw):
            if number is not None and raw == placeholder:
                return str(number)
            return raw if ARGUMENT.fullmatch(raw) else SingleCode(raw)
        case _:
            raise TypeError("a sentence has no choices")


def _hash_counts(leaf: Leaf, number: int | None) -> bool:
    """Return whether `#` in the text is the count, because no number stands for it."""
    return number is None and any(isinstance(node, IcuCount) for node in leaf.nodes)


def _quotes_are_codes(leaf: Leaf, number: int | None) -> bool:
    """Return whether quoted text would be taken for an argument or a count if it were text."""
    texts = [node for node in leaf.nodes if isinstance(node, IcuText)]
    if _hash_counts(leaf, number) and any("#" in each.text for each in texts):
        return True
    joined = "".join(node.text if isinstance(node, IcuText) else MARK for node in leaf.nodes)
    return ARGUMENT.search(joined) is not None


def _segment(sentence: _Sentence, place: str) -> Segment:
    leaf = sentence.leaf
    return Segment(
        text=sentence.text.strip(),
        place=", ".join([place, *leaf.selects]),
        kind="plural" if leaf.category else "message",
        codes=sentence.codes,
        plural=leaf.category,
        number=sentence.number,
        number_optional=sentence.number_optional,
    )


def _shape(root: Branch | Leaf) -> Iterator[str]:
    if isinstance(root, Leaf):
        return
    yield f"{root.choice.name} {root.choice.kind} {root.choice.offset}"
    for selector, arm in root.arms:
        yield selector
        yield from _shape(arm)


def _written(root: Branch | Leaf, found: Mapping[tuple[str, ...], str]) -> str:
    """Return the message with these sentences, spelled as its source where that still stands."""
    if isinstance(root, Leaf):
        return found[root.selectors]
    arms = {selector: _written(arm, found) for selector, arm in root.arms}
    before, behind = _shared(root.before, root.behind, arms.values())
    choice = root.choice
    parts = [before, choice.head]
    for selector in _selectors(root, arms):
        opening = choice.opening(selector)
        content = arms[selector][len(before) : len(arms[selector]) - len(behind)]
        parts += (_apart(parts[-1], opening), opening, content, "}")
    return "".join([*parts, choice.closing, behind])


def _selectors(root: Branch, arms: Mapping[str, str]) -> Iterable[str]:
    """Return those of the source if the others say what `other` says; else all of them."""
    source = root.choice.arms.keys()
    more = {selector: content for selector, content in arms.items() if selector not in source}
    same = more.keys() <= root.optional and all(each == arms["other"] for each in more.values())
    return source if same and arms.keys() >= source else arms


def _shared(before: str, behind: str, arms: Collection[str]) -> tuple[str, str]:
    """Return what can stand around a choice because all of its arms have it."""
    if not all(each.startswith(before) for each in arms) or _cuts_quote(
        before[::-1], (each[len(before) :] for each in arms)
    ):
        before = ""
    if not all(each.endswith(behind) and len(each) >= len(before + behind) for each in arms):
        behind = ""
    inner = (each[len(before) : len(each) - len(behind)][::-1] for each in arms)
    return before, "" if _cuts_quote(behind, inner) else behind


def _cuts_quote(outer: str, inner: Iterable[str]) -> bool:
    """Return whether apostrophes at a cut, where both begin, may belong together."""
    apostrophes = len(outer) - len(outer.lstrip("'"))
    return apostrophes % 2 == 1 or (bool(outer) and any(each[:1] == "'" for each in inner))


def _apart(before: str, opening: str) -> str:
    """Return the blank that an offset and a selector need between them."""
    return " " if before[-1:].isdigit() and not opening[0].isspace() else ""

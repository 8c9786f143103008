"""Elements of HTML: which are blocks, which end others, and those that are open."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman_documents.codec import Kind


def names(joined: str) -> frozenset[str]:
    """Return names that are written with blanks between them."""
    return frozenset(joined.split())


VOID: Final = names(
    "area base basefont bgsound br col command embed frame hr image img input keygen link meta"
    " param source track wbr"
)
BLOCKS: Final = names(
    "address article aside base blockquote body button caption center col colgroup dd details"
    " dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6"
    " head header hgroup hr html legend li listing main menu nav ol optgroup option p plaintext pre"
    " search section select summary table tbody td tfoot th thead title tr ul xmp"
    # of NCX, the table of contents of EPUB 2
    " ncx navmap navpoint navlabel pagelist pagetarget navlist navtarget doctitle docauthor"
)
"""Elements that begin a segment and end the one before; every other is markup within a text."""
NO_TEXT: Final = names(
    "code docauthor iframe kbd listing math noembed noframes plaintext pre rp rt rtc samp script"
    " style svg textarea xmp"
)
"""Elements whose content is not translated. `rt` is the pronunciation of the text before it."""
NEVER_TEXT: Final = names("iframe math noembed noframes plaintext script style svg textarea xmp")
"""Those whose content `translate="yes"` does not make text either."""
KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    **dict.fromkeys(("li", "dt", "dd"), "list_item"),
    **dict.fromkeys(("td", "th"), "cell"),
    **dict.fromkeys(("caption", "figcaption", "legend", "summary"), "caption"),
    **dict.fromkeys(("title", "doctitle"), "title"),
    "option": "value",
    "navlabel": "link",
}

_SCOPE: Final = names("button caption html object table td template th")
_TABLES: Final = _SCOPE | names("tbody tfoot thead tr")
_NO_SCOPE: Final[frozenset[str]] = frozenset()
_ENDS_PARAGRAPH: Final = BLOCKS - names(
    "base body button caption col colgroup frame frameset head html legend optgroup option select"
    " tbody td tfoot th thead title tr"
)
_PARAGRAPH: Final = (names("p"), _SCOPE)
_IMPLIED: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "li": (names("li"), _SCOPE | names("dir menu ol ul")),
    "dt": (names("dd dt"), _SCOPE | names("dl")),
    "dd": (names("dd dt"), _SCOPE | names("dl")),
    "option": (names("option"), names("select optgroup")),
    "optgroup": (names("option optgroup"), names("select")),
    "td": (names("td th"), names("table tr")),
    "th": (names("td th"), names("table tr")),
    "tr": (names("caption colgroup tr td th"), names("table tbody thead tfoot")),
    **dict.fromkeys(
        ("tbody", "thead", "tfoot"),
        (names("caption colgroup tbody thead tfoot tr td th"), names("table")),
    ),
    "body": (names("head"), frozenset()),
    "rp": (names("rp rt"), names("ruby")),
    "rt": (names("rp rt"), names("ruby")),
}
"""Start tag -> elements that it ends, unless one of the others is open within them."""
_IMPLYING: Final = _ENDS_PARAGRAPH | frozenset(_IMPLIED)


class Rules(NamedTuple):
    """What elements mean for the text in them; those of a caller's own XML mean what it says."""

    blocks: frozenset[str] = BLOCKS
    no_text: frozenset[str] = NO_TEXT
    never_text: frozenset[str] = NEVER_TEXT
    attributes: bool = True
    """Whether values of attributes such as `alt` are text."""
    preserved: bool = False
    """Whether blanks and line breaks are kept everywhere, as in `pre`."""


HTML_RULES: Final = Rules()


@dataclass(slots=True)
class HtmlElement:
    """An element that is open."""

    name: str
    start: int
    """Position of its start tag."""
    tag_end: int
    translated: bool
    preserved: bool
    """Whether blanks and line breaks in it are shown as they are."""
    block: bool
    opaque: bool = False
    """Whether it stands in a text and none of it is translated, so that it is one inline code."""
    run: object = None
    """The run of text in which it begins as markup."""
    index: int = -1
    """Its index there."""
    texts: int = 0
    """Runs of text that stood directly in it."""


class OpenElements:
    """The stack of open elements. Every look-up takes constant time."""

    def __init__(self) -> None:
        self._stack: list[HtmlElement] = []
        self._indices: defaultdict[str, list[int]] = defaultdict(list)
        self._blocks: list[int] = []
        self.last: HtmlElement | None = None
        """The innermost element."""
        self.translated = True
        """Whether its content is translated."""

    @property
    def block(self) -> HtmlElement | None:
        """The innermost block."""
        return self._stack[self._blocks[-1]] if self._blocks else None

    def has(self, name: str) -> bool:
        """Return whether an element of this name is open."""
        return bool(self._indices.get(name))

    def push(self, element: HtmlElement) -> None:
        """Open an element."""
        self._indices[element.name].append(len(self._stack))
        if element.block:
            self._blocks.append(len(self._stack))
        self._stack.append(element)
        self.last, self.translated = element, element.translated

    def ended_by_start(self, name: str, *, xml: bool) -> list[HtmlElement]:
        """Close the elements whose end tag is implied by a start tag; innermost first."""
        if xml or name not in _IMPLYING:
            return []
        ended = self._popped(*_PARAGRAPH) if name in _ENDS_PARAGRAPH and self.has("p") else []
        return ended + self._popped(*_IMPLIED[name]) if name in _IMPLIED else ended

    def ended_by_end(self, name: str) -> list[HtmlElement]:
        """Close the elements that an end tag closes, innermost first; none if it matches none.

        The end tag of markup within a text does not close blocks around which that is misnested.
        """
        if self.last is not None and self.last.name == name:
            return [self._pop()]
        found = self._index(name)
        if found < 0 or (
            name not in BLOCKS
            and self._blocks
            and found < self._blocks[-1]
            and self._stack[found].translated
        ):
            return []
        return self._popped(frozenset({name}), _NO_SCOPE if name in _TABLES else _SCOPE)

    def all(self) -> list[HtmlElement]:
        """Close every element, innermost first."""
        return [self._pop() for _ in range(len(self._stack))]

    def _popped(self, wanted: frozenset[str], scope: frozenset[str]) -> list[HtmlElement]:
        found = max(map(self._index, wanted))
        if found < 0 or any(self._index(name) > found for name in scope):
            return []
        return [self._pop() for _ in range(len(self._stack) - found)]

    def _index(self, name: str) -> int:
        indices = self._indices.get(name)
        return indices[-1] if indices else -1

    def _pop(self) -> HtmlElement:
        element = self._stack.pop()
        self._indices[element.name].pop()
        if element.block:
            self._blocks.pop()
        self.last = self._stack[-1] if self._stack else None
        self.translated = self.last is None or self.last.translated
        return element

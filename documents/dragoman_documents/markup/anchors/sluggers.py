"""The ids that renderers make of headings: one function per library, and its rule for equal ones.

`tests/data/heading_ids.json` has the ids that the libraries themselves gave to the same headings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, Literal, NamedTuple

_CATEGORIES: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"})
_LETTERS: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo"})
_CIRCLED: Final = re.compile("[\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169"
                             "\U0001f170-\U0001f189]")  # fmt: skip
"""Letters by the property Alphabetic, though symbols by their category."""
_SPECIAL: Final = re.compile(
    r"[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    r"~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'“”‘’<>,.?/]+"
)
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_CONTROLS: Final = re.compile("[\0-\x1f]")
_COUNTED: Final = re.compile(r"(.*)_([0-9]+)")
_NO_WORD: Final = re.compile(r"[^\w\s-]")
_NO_WORD_OR_SPACE: Final = re.compile(r"[^\w\- ]")
_NO_CJK_WORD: Final = re.compile(r"[^\w\u4e00-\u9fff\- ]")

Text = Literal["plain", "alternative", "spelled", "raw"]
"""What of a heading makes its id: its text without images; with their alternative text; without
them, but with references such as `&amp;` as they are spelled; or its Markdown."""


@lru_cache(4096)
def _is_word(char: str) -> bool:
    return unicodedata.category(char) in _CATEGORIES or _CIRCLED.match(char) is not None


def _words(text: str, other: str) -> str:
    return "".join(each for each in text if each in other or _is_word(each))


# --- of one heading -------------------------------------------------------------------------------


def github_slugger(text: str) -> str:
    """Return the id of github-slugger."""
    return _words(text.lower(), " -").replace(" ", "-")


def mdit_vue(text: str) -> str:
    """Return the id of @mdit-vue/shared, which VitePress and VuePress use."""
    plain = _CONTROLS.sub("", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    slug = re.sub(r"--+", "-", _SPECIAL.sub("-", plain)).strip("-")
    return ("_" + slug if slug[:1].isdecimal() and slug[0].isascii() else slug).lower()


def python_markdown(text: str, *, unicode: bool = False) -> str:
    """Return the id of Python-Markdown's toc: ASCII alone, or with `slugify_unicode` all letters.

    A heading without any of them has none; `underscored` makes it a number.
    """
    if not unicode:
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", _NO_WORD.sub("", text).strip().lower())


def pymdownx(
    text: str, *, case: str = "none", form: Literal["NFC", "NFD", "NFKC", "NFKD"] = "NFC"
) -> str:
    """Return the id of pymdownx.slugs."""
    slug = " ".join(unicodedata.normalize(form, text).split())
    if case == "lower":
        slug = slug.lower()
    elif case == "lower-ascii":
        slug = re.sub("[A-Z]+", lambda found: found[0].lower(), slug)
    elif case == "fold":
        slug = slug.casefold()
    return _NO_WORD_OR_SPACE.sub("", slug).replace(" ", "-")


def goldmark(text: str) -> str:
    """Return the id of Hugo's `github`, its default."""
    made: list[str] = []
    for each in text.strip():
        if each in "-_" or unicodedata.category(each) in _LETTERS or each.isdecimal():
            made.append(each.lower()[0])
        elif each == " ":
            made.append("-")
    return "".join(made) or "heading"


def kramdown(text: str) -> str:
    """Return the id of kramdown without GitHub's extensions: ASCII letters alone."""
    slug = re.sub(r"^[^a-zA-Z]+", "", text)
    return re.sub(r"[^a-zA-Z0-9 -]", "", slug).replace(" ", "-").lower() or "section"


def kramdown_gfm(text: str) -> str:
    """Return the id of kramdown-parser-gfm, which Jekyll uses."""
    return _words("".join(map(str.lower, text)), "- \t").replace(" ", "-").replace("\t", "-")


def mdbook(text: str) -> str:
    """Return the id of mdBook 0.5; older ones lower ASCII letters alone."""
    made: list[str] = []
    for each in text.strip().lower():
        if each in "-_" or each.isalnum() or _CIRCLED.match(each):
            made.append(each)
        elif each.isspace():
            made.append("-")
    return "".join(made)


def myst_parser(text: str) -> str:
    """Return the id of MyST-Parser's `myst_heading_anchors`."""
    return _NO_CJK_WORD.sub("", text.lower().replace(" ", "-"))


def pandoc(text: str) -> str:
    """Return the id of pandoc's `auto_identifiers`, which Quarto uses."""
    lower = "".join(map(str.lower, text))
    words = "".join(each for each in lower if each.isalnum() or each.isspace() or each in "_-.")
    kept = "-".join(words.split())
    first = next((index for index, each in enumerate(kept) if each.isalpha()), len(kept))
    return kept[first:] or "section"


def nbconvert(text: str) -> str:
    """Return the id of nbconvert: case and punctuation stay."""
    return text.replace(" ", "-")


# --- of equal ones --------------------------------------------------------------------------------

Ids = dict[str, int]
"""The ids of a page, with the numbers that were given for them."""


def github_numbers(slug: str, ids: Ids) -> str:
    """Return `slug`, `slug-1`, ..: the first that no id of the page is."""
    made = slug
    while made in ids:
        ids[slug] += 1
        made = f"{slug}-{ids[slug]}"
    return made


def counted(slug: str, ids: Ids) -> str:
    """Return `slug-1` for the second heading of it, even if that is the id of another one."""
    number = ids.get(slug, 0)
    ids[slug] = number + 1
    return f"{slug}-{number}" if number else slug


def underscored(slug: str, ids: Ids) -> str:
    """Return `slug`, `slug_1`, ..: the first that is new; a number at its end rises."""
    made = slug
    while made in ids or not made:
        found = _COUNTED.fullmatch(made)
        made = f"{found[1]}_{int(found[2]) + 1}" if found else f"{made}_1"
    return made


def alone(slug: str, _ids: Ids) -> str:
    """Return the id itself: equal headings have equal ids."""
    return slug


class Slugger(NamedTuple):
    """How a renderer makes ids."""

    slug: Callable[[str], str]
    unique: Callable[[str, Ids], str] = github_numbers
    text: Text = "plain"
    smart: bool = False
    """Whether `--`, `...` and quotes become other characters first, which no id has."""
    emoji: bool = True
    """Whether the name of `:emoji:` is text."""
    explicit_first: bool = False
    """Whether automatic ids avoid explicit ones, also of headings below."""
    terms: bool = False
    """Whether a term with a definition has an id too."""
    by_text: bool = False
    """Whether `[text]` is a link to the heading of that text."""


_PYTHON: Final = {
    "python-markdown": Slugger(python_markdown, underscored, explicit_first=True),
    "python-markdown-unicode": Slugger(
        partial(python_markdown, unicode=True), underscored, explicit_first=True
    ),
    **{
        f"pymdownx-{case}": Slugger(partial(pymdownx, case=case), underscored, explicit_first=True)
        for case in ("none", "lower", "lower-ascii", "fold")
    },
}
WITH_EMOJI: Final = "+emoji"
"""Behind the name of a slugger of Python-Markdown: emoji are pictures there, and no text."""
WITH_TERMS: Final = "goldmark+terms"
"""Hugo's with `autoDefinitionTermID`: a term with a definition has an id too."""
_GOLDMARK: Final = Slugger(goldmark, text="alternative", smart=True)
SLUGGERS: Final = {
    "github-slugger": Slugger(github_slugger),
    "docusaurus": Slugger(github_slugger, text="alternative"),
    "astro": Slugger(github_slugger, smart=True),
    "mdit-vue": Slugger(mdit_vue, text="spelled", emoji=False),
    "goldmark": _GOLDMARK,
    WITH_TERMS: _GOLDMARK._replace(terms=True),
    "kramdown": Slugger(kramdown, counted, text="raw"),
    "kramdown-gfm": Slugger(kramdown_gfm, counted, smart=True),
    "mdbook": Slugger(mdbook, smart=True),
    "myst-parser": Slugger(myst_parser),
    "pandoc": Slugger(pandoc, text="alternative", smart=True, by_text=True),
    "nbconvert": Slugger(nbconvert, alone),
    **_PYTHON,
    **{f"{name}{WITH_EMOJI}": each._replace(emoji=False) for name, each in _PYTHON.items()},
}
"""Sluggers by name; a site names one of them."""

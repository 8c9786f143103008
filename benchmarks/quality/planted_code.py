"""Planted errors of what is copied: placeholders, tags, messages of ICU, links, codes, names."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pairs import Pair
from planting import (
    PLACEHOLDERS,
    Kind,
    Material,
    Plant,
    Planted,
    changed,
    right,
    shared_token,
    with_items,
    words,
)

from dragoman_text.spans import Span, find_spans

_CHANGED: Final = (
    (":name", ":nombre"), ("%1", "%2"), ("%n", "n"), ("{ $x }", "{ $y }"), ("{$x}", "{$y}"),
    ("[[x]]", "[[y]]"), ("$t(key)", "$t(clave)"), ("<%= name %>", "<%= nom %>"),
    ("{:.2f}", "{:,2f}"),
)  # fmt: skip
_KNOWN: Final = (
    ("%s", ""), ("%d", "% d"), ("{name}", "{nombre}"), ("{{name}}", "{{nom}}"), ("${x}", "$ {x}"),
    ("%(name)s", "%(nom)s"), ("{0}", "{1}"), ("%@", ""),
)  # fmt: skip
_VERBATIM: Final = {
    "link": ("https://example.org/docs/start", "https://example.org/docs/anfang"),
    "mail": ("help@example.org", "hilfe@example.org"),
    "code in backticks": ("`git push`", "`git schieben`"),
    "path": ("/etc/hosts.conf", "/etc/wirte.conf"),
    "option": ("--force", "--erzwingen"),
    "identifier": ("max_retries", "max_versuche"),
    "environment variable": ("$HOME", "$HAUS"),
    "version": ("v2.3.1", "v2.1.3"),
    "hash": ("9f86d081884c", "9f86d018884c"),
    "unit": ("25 km", "25 mi"),
    "currency": ("$40", "€40"),
    "emoji": ("🎉", "🔥"),
    "formula": ("\\(x^2\\)", "x2"),
    "Markdown link with a blank": ("[x1](https://example.org)", "[x1] (https://example.org)"),
    "path of an image lost": ("![x1](a/b.png)", "![x1]()"),
}
_LIST: Final = "Samsung Galaxy S24 Ultra, Apple iPhone 15 Pro Max, Google Pixel 8 Pro"
_BRANDS: Final = (
    "Lenovo ThinkPad, Dell XPS, Asus ZenBook Pro Duo, Microsoft Surface Laptop Studio",
    "#GardenLife #Roses #SpringPlants #Tomatoes #Compost #GreenThumb",
    "Smith J., Miller A. B., van der Berg C., O'Neill D., García-López E.",
    "742 Evergreen Terrace, Springfield, OR 97477",
    "SELECT name, price FROM products WHERE price > 100 ORDER BY name;",
    _LIST,
)
_PLURAL: Final = "{{count, plural, =0 {{{0}}} one {{# {1}}} other {{# {2}}}}}"
_SELECT: Final = "{{gender, select, male {{{0}}} female {{{1}}} other {{{2}}}}}"


# --- spans that a message has ---------------------------------------------------------------------


def _spans(pair: Pair, kinds: frozenset[str]) -> list[Span]:
    return [
        span
        for span in find_spans(pair.target)
        if span.kind in kinds and pair.target[span.start : span.end] in pair.source
    ]


def _on_span(kinds: frozenset[str], change: Callable[[str, random.Random], str]) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        pair = pairs[0]
        spans = [each for each in _spans(pair, kinds) if pair.target[each.start : each.end] != "%%"]
        if not spans:
            return None
        span = chance.choice(spans)
        by = change(pair.target[span.start : span.end], chance)
        return Planted(pair, pair.target[: span.start] + by + pair.target[span.end :])

    return plant


def _altered(text: str, chance: random.Random) -> str:
    """Inflect or translate a placeholder: `%(country)s` becomes `%(country)ama`."""
    inner = text[:-1] + ("ama" if text[-1].isalpha() else "x" + text[-1])
    return chance.choice([inner, text[:-1], text[1:]])


def _items(choices: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        return with_items(pairs[0], *chance.choice(choices))

    return plant


def _item(choices: Sequence[tuple[str, str]]) -> Plant:
    return _items([([good], [bad]) for good, bad in choices])


# --- tags and messages ----------------------------------------------------------------------------


def _tagged(opened: str, closed: str, change: Callable[[str, str, str, str], str]) -> Plant:
    """Mark a name or a number that both texts have."""

    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        token = shared_token(pairs[0], chance)
        if token is None:
            return None
        marked = f"{opened}{token}{closed}"
        source, target = (
            text.replace(token, marked) for text in (pairs[0].source, pairs[0].target)
        )
        return Planted(changed(pairs[0], source, target), change(target, token, opened, closed))

    return plant


def _late(text: str, token: str, opened: str, closed: str) -> str:
    return text.replace(closed, "") + closed


def _emptied(text: str, token: str, opened: str, closed: str) -> str:
    return text.replace(f"{token}{closed}", f"{closed}{token}")


def _moved(text: str, token: str, opened: str, closed: str) -> str:
    plain = text.replace(opened, "").replace(closed, "")
    first, _, rest = plain.partition(" ")
    return f"{opened}{first}{closed} {rest}" if first != token else f"{plain} {opened}{closed}"


def _lost(text: str, token: str, opened: str, closed: str) -> str:
    return text.replace(opened, "").replace(closed, "")


def _one_lost(text: str, token: str, opened: str, closed: str) -> str:
    return text.replace(closed, "")


def _message(form: str, change: Callable[[str], str]) -> Plant:
    """Put sentences into the arms of a message of ICU."""

    def plant(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted | None:
        if any(re.search("[{}#'<]", text) for pair in pairs for text in (pair.source, pair.target)):
            return None
        source, target = (
            form.format(*texts)
            for texts in ([pair.source for pair in pairs], [pair.target for pair in pairs])
        )
        return Planted(changed(pairs[0], source, target), change(target))

    return plant


def _arm_lost(text: str) -> str:
    return re.sub(r" (?:one|female) \{[^}]*\}", "", text)


# --- right answers ------------------ ---------------------------------------------------------


def _list_kept(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted:
    text = chance.choice(_BRANDS)
    return Planted(changed(pairs[0], text, pairs[0].target), text)


def _nothing(text: str) -> str:
    return text


def _short_arms(pairs: Sequence[Pair], chance: random.Random, material: Material) -> Planted | None:
    """Put single words into the arms, as in ``{gender, select, male {He} female {She} ...}``."""
    short = [
        changed(pair, words(pair.source)[0].strip(".,"), words(pair.target)[0][:12].strip(".,،、"))
        for pair in pairs
    ]
    planted = right(_message(_SELECT, _nothing))(short, chance, material)
    if planted is None:
        return None
    good = planted.good
    whole = changed(good, f"{good.source} {pairs[0].source}", f"{good.target} {pairs[0].target}")
    return Planted(whole, whole.target)


def _right_order(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted | None:
    planted = with_items(pairs[0], ("%1$s", "%2$s"), ("%2$s", "%1$s"))
    return planted and Planted(planted.good, planted.bad)


def _message_kept(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted | None:
    return Planted(pairs[0], pairs[0].target) if _spans(pairs[0], PLACEHOLDERS) else None


def _kinds() -> Iterator[Kind]:
    messages = [
        ("placeholder of a message lost", _on_span(PLACEHOLDERS, lambda *_: "")),
        ("placeholder of a message altered", _on_span(PLACEHOLDERS, _altered)),
        (
            "placeholder of a message twice",
            _on_span(PLACEHOLDERS, lambda text, _: f"{text} {text}"),
        ),
    ]
    for name, plant in messages:
        yield Kind(name, plant, "message")
    yield Kind("placeholder altered: %s {name} {{name}} %(name)s", _item(_KNOWN))
    yield Kind("placeholder altered: :name %1 { $x } [[x]] $t()", _item(_CHANGED))
    yield Kind("positions: %1$s %2$s > %2$s %2$s", _items([(("%1$s", "%2$s"), ("%2$s", "%2$s"))]))
    yield Kind("positions: %1$s %2$s > %3$s %4$s", _items([(("%1$s", "%2$s"), ("%3$s", "%4$s"))]))
    yield Kind("position: %1$s > %2$s", _item([("%1$s", "%2$s")]))
    yield Kind("order: %s %d > %d %s", _items([(("%s", "%d"), ("%d", "%s"))]))
    yield Kind("right: %1$s %2$s > %2$s %1$s", _right_order, right=True)
    for name, (good, bad) in _VERBATIM.items():
        yield Kind(f"changed: {name}", _item([(good, bad)]))
    for opened, closed in (("<b>", "</b>"), ("<g1>", "</g1>"), ("<0>", "</0>")):
        yield Kind(f"{opened} closed late", _tagged(opened, closed, _late))
        yield Kind(f"{opened} emptied", _tagged(opened, closed, _emptied))
        yield Kind(f"{opened} moved to another word", _tagged(opened, closed, _moved))
        yield Kind(f"{opened} and its end lost", _tagged(opened, closed, _lost))
        yield Kind(f"end of {opened} lost", _tagged(opened, closed, _one_lost))
    yield Kind("half of a pair of tags in a piece lost", _tagged("<b>", "", _lost))
    yield Kind(
        "ICU keyword translated: plural > pluriel",
        _message(_PLURAL, lambda text: text.replace("plural", "pluriel")),
        size=3,
    )
    yield Kind(
        "ICU category translated: one > uno",
        _message(
            _PLURAL, lambda text: text.replace(" one {", " uno {").replace(" other {", " otro {")
        ),
        size=3,
    )
    yield Kind(
        "ICU argument translated: count > cuenta",
        _message(_PLURAL, lambda text: text.replace("count", "cuenta")),
        size=3,
    )
    yield Kind(
        "ICU value translated: female > femme",
        _message(_SELECT, lambda text: text.replace(" female {", " femme {")),
        size=3,
    )
    yield Kind("ICU arm lost", _message(_SELECT, _arm_lost), size=3)
    yield Kind("ICU brace lost", _message(_SELECT, lambda text: text[:-1]), size=3)
    yield Kind(
        "right: ICU plural translated", right(_message(_PLURAL, _nothing)), size=3, right=True
    )
    yield Kind(
        "right: ICU select translated", right(_message(_SELECT, _nothing)), size=3, right=True
    )
    yield Kind("right: ICU select of single words", _short_arms, size=3, right=True)
    yield Kind("right: names, hashtags, addresses, SQL kept", _list_kept, right=True)
    yield from _right_kinds()


def _right_kinds() -> Iterator[Kind]:
    for opened, closed in (("<b>", "</b>"), ("<g1>", "</g1>"), ("<0>", "</0>")):
        yield Kind(f"right: {opened} kept", right(_tagged(opened, closed, _lost)), right=True)
    items = [(good, bad) for good, bad in (*_CHANGED, *_KNOWN, *_VERBATIM.values())]
    yield Kind("right: placeholders, links, codes kept", right(_item(items)), right=True)
    yield Kind("right: a message with placeholders", right(_message_kept), "message", right=True)


KINDS: Final = tuple(_kinds())

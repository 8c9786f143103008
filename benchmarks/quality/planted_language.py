"""Planted errors of language: copies, other languages and scripts, text left in the source."""

from __future__ import annotations

import html
import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pairs import Pair
from planting import (
    UNSPACED,
    Kind,
    Material,
    Plant,
    Planted,
    as_one,
    changed,
    is_latin,
    joined_targets,
    language,
    words,
)

_COPIED: Final = (
    "es>pt es>ca es>gl pt>es cs>sk sk>cs da>nb nb>da sv>da nb>nn hr>sr-Latn hr>bs id>ms ms>id "
    "bg>mk mk>bg nl>af xh>zu de>lb zh-Hans>yue ru>uk uk>ru hi>mr fa>fa-AF it>es fr>ca"
)
"""Relatives between which a source comes back unchanged."""
_NEAR: Final = (
    "pt-PT>pt-BR es>es-MX fr>fr-CA nb>nn nn>nb hr>bs bs>hr hr>sr-Latn bg>mk mk>bg cs>sk sk>cs "
    "id>ms ms>id nb>da da>nb sv>nb da>sv es>ca ca>es pt-BR>es es>pt-BR nl>af af>nl xh>zu zu>xh"
)
_FAR: Final = (
    "uk>ru ru>uk be>ru ur>hi hi>mr mr>hi hi>ne hi>pa de>nl nl>de az>tr tr>az th>lo ja>zh-Hans "
    "zh-Hans>ja ko>ja ja>ko pl>cs fi>et it>fr"
)
"""Asked>got: the gates are to tell each pair apart; the first group is hard."""
_THIRD: Final = {
    "Hani": "科技 错误 奖励 正确 语言 工作 重要 时间 问题 社会",
    "Cyrl": "работа время система город вопрос слово дело жизнь",
    "Arab": "العمل الوقت النظام المدينة السؤال الكلمة",
    "Hang": "시간 문제 사람 세계 언어 중요",
}
_CLAUSES: Final = {"Hani": "但显得有些拘谨不太自然吧", "Hang": "그러나 조금 어색해 보입니다"}
_RUSSIAN: Final = (
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ",
    "a b v g d e yo zh z i y k l m n o p r s t u f kh ts ch sh shch - y - e yu ya i yi ye g",
)
_GREEK: Final = (
    "αβγδεζηθικλμνξοπρσςτυφχψω",
    "a v g d e z i th i k l m n x o p r s s t y f ch ps o",
)
_ARABIC: Final = (
    "ابتثجحخدذرزسشصضطظعغفقكلمنهويةىءأإآئؤ",
    "a b t th j h kh d dh r z s sh s d t z a gh f q k l m n h w y a a a a i a y w",
)
_ROMAN: Final = {"ru": _RUSSIAN, "uk": _RUSSIAN, "el": _GREEK, "ar": _ARABIC}
_ALIKE: Final = str.maketrans("aeopcx", "аеорсх")


# --- the source in the answer ---------------------------------------------------------------------


def _copied(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted:
    return Planted(pairs[0], pairs[0].source)


def _copied_short(
    pairs: Sequence[Pair], _chance: random.Random, material: Material
) -> Planted | None:
    """Copy a sentence cut down to less than 40 characters, with as much of its translation."""
    pair = pairs[0]
    share = 36 / len(pair.source)
    source = " ".join(words(pair.source[:36])[:-1])
    short = changed(pair, source, pair.target[: round(len(pair.target) * share)])
    return Planted(short, source)


def _copied_relative(
    pairs: Sequence[Pair], chance: random.Random, material: Material
) -> Planted | None:
    source_lang, target_lang = chance.choice(_COPIED.split()).split(">")
    source, target = (
        material.in_language(pairs[0].source, tag) for tag in (source_lang, target_lang)
    )
    if source is None or target is None or source == target:
        return None
    return Planted(Pair("relatives", source, target, source_lang, target_lang), source)


def _nearly_copied(
    pairs: Sequence[Pair], chance: random.Random, _material: Material
) -> Planted | None:
    pair, parts = pairs[0], words(pairs[0].source)
    ours = [word for word in words(pair.target) if len(word) < 12]
    if len(parts) < 8 or not ours:
        return None
    parts[chance.randrange(len(parts))] = chance.choice(ours)
    return Planted(pair, " ".join(parts))


def _latin_only(plant: Plant, latin: bool) -> Plant:
    def planted(pairs: Sequence[Pair], chance: random.Random, material: Material) -> Planted | None:
        return plant(pairs, chance, material) if is_latin(pairs[0]) == latin else None

    return planted


def _half_left(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted | None:
    pair = pairs[0]
    source = words(pair.source)
    cut = len(pair.target) // 2
    ours = pair.target[:cut] if language(pair) in UNSPACED else pair.target[:cut].rpartition(" ")[0]
    return Planted(pair, f"{ours} {' '.join(source[len(source) // 2 :])}") if ours else None


def _words_left(
    pairs: Sequence[Pair], chance: random.Random, _material: Material
) -> Planted | None:
    pair, source, parts = pairs[0], words(pairs[0].source), words(pairs[0].target)
    if len(source) < 12 or (len(parts) < 10 and language(pair) not in UNSPACED):
        return None
    at = chance.randrange(2, len(source) - 6)
    if len(parts) < 10:
        cut = len(pair.target) // 2
        return Planted(
            pair, pair.target[:cut] + " ".join(source[at : at + 5]) + pair.target[cut + 8 :]
        )
    into = chance.randrange(2, len(parts) - 6)
    return Planted(pair, " ".join([*parts[:into], *source[at : at + 5], *parts[into + 5 :]]))


def _sentences_left(number: int) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        left = set(chance.sample(range(len(pairs)), number))
        targets = [pair.source if at in left else pair.target for at, pair in enumerate(pairs)]
        return Planted(as_one(pairs), joined_targets(pairs, targets, " "))

    return plant


def _both(form: str) -> Plant:
    def plant(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted | None:
        return Planted(pairs[0], form.format(pairs[0].source, pairs[0].target))

    return plant


# --- another language or script -------------------------------------------------------------------


def _relative(group: str) -> Plant:
    def plant(pairs: Sequence[Pair], chance: random.Random, material: Material) -> Planted | None:
        asked, got = chance.choice(group.split()).split(">")
        return _asked(pairs, asked, asked, got, material)

    return plant


def _asked(
    pairs: Sequence[Pair], tag: str, asked: str, got: str, material: Material
) -> Planted | None:
    """Return the answer in the language `got`, where `tag` was asked for, in words of `asked`."""
    good, bad = (material.in_language(pairs[0].source, each) for each in (asked, got))
    if good is None or bad is None or good == bad:
        return None
    return Planted(Pair("other language", pairs[0].source, good, "en", tag), bad)


def _fixed(tag: str, asked: str, got: str) -> Plant:
    return lambda pairs, _chance, material: _asked(pairs, tag, asked, got, material)


def _romanized(
    pairs: Sequence[Pair], _chance: random.Random, _material: Material
) -> Planted | None:
    table = _ROMAN.get(language(pairs[0]))
    if table is None:
        return None
    letters = dict(zip(table[0], table[1].replace("-", "'").split(), strict=True))
    plain = (
        "".join(
            each
            for each in unicodedata.normalize("NFD", pairs[0].target)
            if not unicodedata.combining(each)
        )
        if language(pairs[0]) in {"el", "ar"}
        else pairs[0].target
    )
    answer = "".join(
        letters.get(each.lower(), each)
        if each == each.lower()
        else letters.get(each.lower(), each).capitalize()
        for each in plain
    )
    return Planted(pairs[0], answer)


def _third(script: str, glued: bool, clause: bool = False) -> Plant:
    own = {
        "Hani": {"zh", "ja", "ko", "yue"},
        "Cyrl": {"ru", "uk"},
        "Arab": {"ar", "fa"},
        "Hang": {"ko"},
    }

    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        pair, parts = pairs[0], words(pairs[0].target)
        if language(pair) in own[script] or len(parts) < 6:
            return None
        word = _CLAUSES[script] if clause else chance.choice(_THIRD[script].split())
        at = chance.randrange(1, len(parts) - 1)
        parts[at : at + 1] = [word + parts[at]] if glued else [word]
        return Planted(pair, " ".join(parts))

    return plant


def _alike(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
    parts = words(pairs[0].target)
    found = [
        at for at, word in enumerate(parts) if len(word) > 4 and re.search("[aeopcx]", word[1:-1])
    ]
    if not found or not is_latin(pairs[0]):
        return None
    at = chance.choice(found)
    parts[at] = parts[at][0] + parts[at][1:-1].translate(_ALIKE) + parts[at][-1]
    return Planted(pairs[0], " ".join(parts))


# --- letters --------------------------------------------------------------------------------------


def _letters(change: Callable[[str], str]) -> Plant:
    def plant(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted | None:
        answer = change(pairs[0].target)
        return Planted(pairs[0], answer) if answer != pairs[0].target else None

    return plant


def _mojibake(text: str) -> str:
    return text.encode().decode("cp1252", errors="replace")


def _escaped(text: str) -> str:
    return html.escape(text, quote=True) if re.search("[\"']", text) else text


def _codes(text: str) -> str:
    return json.dumps(text)[1:-1] if not text.isascii() else text


def _without_marks(text: str) -> str:
    parts = unicodedata.normalize("NFD", text)
    return "".join(each for each in parts if not unicodedata.combining(each))


def _run_together(text: str) -> str:
    return text.replace(" ", "")


def _two_run_together(text: str) -> str:
    """Lose every blank of the second half."""
    cut = len(text) // 2
    return text[:cut] + text[cut:].replace(" ", "")


def _kinds() -> Iterator[Kind]:
    yield Kind("source copied, relatives", _copied_relative)
    yield Kind("source copied, 40 characters or more", _copied)
    yield Kind("source copied, under 40 characters", _copied_short)
    yield Kind("source copied but for one word", _nearly_copied)
    for latin, name in ((True, "Latin"), (False, "other scripts")):
        yield Kind(f"second half left English, {name}", _latin_only(_half_left, latin))
        yield Kind(f"5 English words inside, {name}", _latin_only(_words_left, latin))
        yield Kind(
            f"1 of 8 sentences English, {name}", _latin_only(_sentences_left(1), latin), size=8
        )
        yield Kind(
            f"3 of 8 sentences English, {name}", _latin_only(_sentences_left(3), latin), size=8
        )
        yield Kind(f"source, then translation, {name}", _latin_only(_both("{0}\n{1}"), latin))
        yield Kind(f"source in brackets behind, {name}", _latin_only(_both("{1} ({0})"), latin))
    yield Kind("relative near: es>ca, nb>nn, cs>sk ...", _relative(_NEAR))
    yield Kind("relative far: uk>ru, de>nl, az>tr ...", _relative(_FAR))
    yield Kind("zh-Hant asked, Simplified", _fixed("zh-Hant", "zh-Hant", "zh-Hans"))
    yield Kind("zh-Hans asked, Traditional", _fixed("zh-Hans", "zh-Hans", "zh-Hant"))
    yield Kind("zh asked, Traditional", _fixed("zh", "zh-Hans", "zh-Hant"))
    yield Kind("zh-TW asked, Simplified", _fixed("zh-TW", "zh-Hant", "zh-Hans"))
    yield Kind("zh-Hant asked, Cantonese", _fixed("zh-Hant", "zh-Hant", "yue"))
    yield Kind("sr-Cyrl asked, Latin", _fixed("sr-Cyrl", "sr-Cyrl", "sr-Latn"))
    yield Kind("sr asked, Latin", _fixed("sr", "sr-Cyrl", "sr-Latn"))
    yield Kind("sr-Latn asked, Cyrillic", _fixed("sr-Latn", "sr-Latn", "sr-Cyrl"))
    yield Kind("ckb asked, Latin Kurmanji", _fixed("ckb", "ckb", "kmr"))
    yield Kind("romanized: ru, uk, el, ar", _romanized)
    for script, name in (
        ("Hani", "Chinese"),
        ("Cyrl", "Cyrillic"),
        ("Arab", "Arabic"),
        ("Hang", "Korean"),
    ):
        yield Kind(f"{name} word inside", _third(script, glued=False))
        yield Kind(f"{name} word inside, no blank behind", _third(script, glued=True))
    yield Kind("Chinese clause inside", _third("Hani", glued=False, clause=True))
    yield Kind("Cyrillic look-alikes in a Latin word", _alike)
    yield Kind("mojibake", _letters(_mojibake))
    yield Kind("HTML escapes", _letters(_escaped))
    yield Kind("\\u escapes", _letters(_codes))
    yield Kind("all blanks lost", _letters(_run_together))
    yield Kind("blanks of the second half lost", _letters(_two_run_together))
    yield Kind("l e t t e r s", _letters(" ".join))
    yield Kind("CAPITALS", _letters(str.upper))
    yield Kind("diacritics lost", _latin_only(_letters(_without_marks), latin=True))


KINDS: Final = tuple(_kinds())

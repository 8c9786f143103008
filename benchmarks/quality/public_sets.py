"""Human translation pairs, and answers of real systems, from public sets as they are published.

NTREX-128: the folder `NTREX-128` of github.com/MicrosoftTranslator/NTREX. FLORES-200: a folder of
`eng_Latn.devtest`, `deu_Latn.devtest`, and so on. WMT: a folder with `sources`, `references` and
`system-outputs` of a `wmt*-news-systems` repository. TICO-19: a folder of `en-am`, `en-ar`, and so
on. Catalogs: any folder with `LANGUAGE/LC_MESSAGES/*.po` below it. TSV: columns set, source and
target language, source, target, with the escapes `\\n`, `\\t` and `\\\\`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Final

from babel.messages.pofile import read_po
from langcodes import Language
from pairs import Pair

_TAGS: Final = {
    "por": "pt-PT", "pt-BR": "pt-BR",
    "pt_BR": "pt-BR", "por-BR": "pt-BR", "zho-CN": "zh-Hans", "zho-TW": "zh-Hant", "pt": "pt-PT",
    "zho_Hans": "zh-Hans", "zho_Hant": "zh-Hant", "por_Latn": "pt", "zh": "zh-Hans",
    "zh_CN": "zh-Hans", "zh_TW": "zh-Hant", "zh_Hans": "zh-Hans", "zh_Hant": "zh-Hant",
    "sr": "sr-Cyrl", "sr@latin": "sr-Latn", "sr_Latn": "sr-Latn", "srp_Cyrl": "sr-Cyrl",
    "no": "nb", "no_NO": "nb", "es_LA": "es-419", "zh_HK": "zh-HK", "kmr_Latn": "kmr",
    "ckb-Arab": "ckb", "kmr": "kmr", "fuv": "fuv", "gsw-BE": "gsw", "gsw-ZH": "gsw",
    "srp-Cyrl": "sr-Cyrl", "kor_Hang": "ko",
}  # fmt: skip
_MACRO: Final = {
    "arb": "ar", "zsm": "ms", "npi": "ne", "pes": "fa", "azj": "az", "uzn": "uz", "lvs": "lv",
    "als": "sq", "khk": "mn", "ydd": "yi", "swh": "sw", "plt": "mg", "gaz": "om", "ory": "or",
    "pbt": "ps", "quy": "qu", "ayr": "ay", "dik": "din", "est": "et", "msa": "ms", "fas": "fa",
    "nob": "nb", "nno": "nn", "swa": "sw", "orm": "om", "mlg": "mg", "mon": "mn", "aze": "az",
    "lav": "lv", "yid": "yi",
}  # fmt: skip
_NO_LANGUAGES: Final = re.compile(
    "ach_UG|tlh|xx|ku_IQ|cmn|catalogs|en(_.*)?|.*[.].*|.*@(?!latin).*"
)
"""Folders of catalogs that hold pseudo translations, another language than they name, or none."""
RELATIVES: Final = (
    "es>pt es>ca es>gl pt>es cs>sk sk>cs da>nb nb>da sv>da nb>nn hr>sr-Cyrl hr>bs id>ms ms>id "
    "bg>mk mk>bg nl>af xh>zu de>lb zh-Hans>yue zh-Hans>zh-Hant zh-Hant>zh-Hans ru>uk uk>ru ru>be "
    "hi>mr hi>ne fa>fa-AF ur>fa tr>az it>es fr>ca pl>cs sl>hr lt>lv"
)
"""Pairs of related languages, read from FLORES-200, where every text is in every language."""
_ASKED: Final = (
    "am ar de es fa fr he hi id ja ka km ko my pt-BR pt-PT pt ru sr-Cyrl sr-Latn sw ta th tr vi yo "
    "zh-Hans zh-Hant"
)
ASKED: Final = frozenset(_ASKED.split())
"""Target languages of the goals."""
_ESCAPES: Final = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}


@cache
def tag_of(code: str) -> str:
    """Return the tag a user gives for a code such as ``arb_Arab``, ``zho-CN`` or ``pt_BR``."""
    if code in _TAGS:
        return _TAGS[code]
    language, _, rest = code.replace("_", "-").replace("@latin", "-Latn").partition("-")
    tag = Language.get("-".join(filter(None, (_MACRO.get(language, language), rest))))
    plain = Language.get(tag.language or "und").maximize()
    script = None if tag.script == plain.script else tag.script
    territory = None if tag.territory == plain.territory else tag.territory
    made = Language.make(tag.language, script=script, territory=territory).to_tag()
    return _TAGS.get(made, made)


def ntrex(folder: Path) -> Iterator[Pair]:
    """Yield the English sentences of NTREX-128 with the translations into 127 languages."""
    english = _lines(folder / "newstest2019-src.eng.txt")
    for place in sorted(folder.glob("newstest2019-ref*.txt")):
        tag = tag_of(place.name.split(".")[1])
        if not tag.startswith("en"):
            yield from _pairs("ntrex", english, _lines(place), "en", tag)


def flores(folder: Path) -> Iterator[Pair]:
    """Yield FLORES-200 from English, from its larger languages into English, and of relatives."""
    places = {tag_of(place.stem): place for place in sorted(folder.glob("*_*.dev*"))}
    texts = {tag: _lines(place) for tag, place in places.items()}
    for tag, lines in texts.items():
        if tag != "en":
            yield from _pairs("flores", texts["en"], lines, "en", tag)
    for tag in sorted((ASKED | {"cs", "pl", "uk", "it"}) & texts.keys()):
        yield from _pairs("flores-en", texts[tag], texts["en"], tag, "en")
    for source, target in (each.split(">") for each in RELATIVES.split()):
        if source in texts and target in texts:
            yield from _pairs("flores-xy", texts[source], texts[target], source, target)


def wmt(folder: Path) -> Iterator[Pair]:
    """Yield the references of one year's test sets."""
    for place, source, target in _wmt_files(folder, "references"):
        yield from _pairs("wmt", _wmt_source(folder, source, target), _lines(place), source, target)


def wmt_systems(folder: Path) -> Iterator[Pair]:
    """Yield the answers of all systems of one year; the system's name stands for the corpus."""
    for place, source, target in _wmt_files(folder, "system-outputs"):
        sources = _wmt_source(folder, source, target)
        yield from _pairs(place.stem, sources, _lines(place), source, target)


def _wmt_files(folder: Path, kind: str) -> Iterator[tuple[Path, str, str]]:
    for place in sorted((folder / kind).rglob("*")):
        languages = re.search(
            r"(?:^|[./])([a-z]{2,3})-([a-z]{2,3})[./]", f"{place.parent.name}/{place.name}"
        )
        if place.is_file() and languages and "hyp" not in place.name.split(".")[-1:]:
            yield place, languages[1], languages[2]


def _wmt_source(folder: Path, source: str, target: str) -> list[str]:
    found = [
        place
        for place in (folder / "sources").iterdir()
        if re.search(rf"(?:^|\.){source}-{target}\.", place.name)
    ]
    return _lines(found[0])


def tico(folder: Path) -> Iterator[Pair]:
    """Yield the English texts about health of TICO-19 with their translations."""
    for english in sorted(folder.glob("en-*/*.en")):
        code = english.parent.name.removeprefix("en-")
        other = english.with_suffix(f".{code}")
        if other.is_file():
            yield from _pairs("tico", _lines(english), _lines(other), "en", tag_of(code))


def po_catalogs(folder: Path) -> Iterator[Pair]:
    """Yield the finished messages of a folder of catalogs, each once per language."""
    seen: set[tuple[str, str, str]] = set()
    for place in sorted(folder.rglob("*.po")):
        code = place.parent.parent.name if place.parent.name == "LC_MESSAGES" else place.stem
        if _NO_LANGUAGES.fullmatch(code):
            continue
        tag = tag_of(code)
        for source, target in _messages(place):
            if (tag, source, target) not in seen:
                seen.add((tag, source, target))
                yield Pair("catalogs", source, target, "en", tag)


def _messages(place: Path) -> Iterator[tuple[str, str]]:
    try:
        with place.open("rb") as file, redirect_stdout(StringIO()):  # it prints what it skips
            catalog = read_po(file, ignore_obsolete=True)
    except ValueError:  # a date or a charset of its header is wrong
        return
    for message in catalog:
        if message.id and isinstance(message.id, str) and message.string and not message.fuzzy:
            yield message.id, str(message.string)


def tsv(place: Path) -> Iterator[Pair]:
    """Yield the pairs of a table."""
    with place.open(encoding="utf-8") as file:
        for line in file:
            name, source_lang, target_lang, *texts = line.rstrip("\n").split("\t")
            source, target = map(_unescaped, texts)
            yield Pair(name, source, target, source_lang, target_lang)


def tsv_line(pair: Pair) -> str:
    """Return the line of a table for a pair, with its line break."""
    texts = map(escaped, (pair.source, pair.target))
    return "\t".join([pair.corpus, pair.source_lang, pair.target_lang, *texts]) + "\n"


def escaped(text: str) -> str:
    """Return the text as a cell of a table has it."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\[nt\\]", lambda found: _ESCAPES[found[0]], text)


def _lines(place: Path) -> list[str]:
    return [line.strip() for line in place.read_text(encoding="utf-8-sig").split("\n")]


def _pairs(
    name: str, sources: list[str], targets: list[str], source_lang: str, target_lang: str
) -> Iterator[Pair]:
    source_lang, target_lang = tag_of(source_lang), tag_of(target_lang)
    for source, target in zip(sources, targets, strict=False):
        if source and target and not source.startswith("CANARY GUID"):
            yield Pair(name, source, target, source_lang, target_lang)

"""Human translation pairs from folders: public sets, Tatoeba, message catalogues, LibreOffice help.

Nothing is downloaded. Tatoeba: `*-eng.zip` of manythings.org. Catalogues: a folder such as
/usr/share/locale with `TAG/LC_MESSAGES/*.mo`. Help: the folder of Debian's libreoffice-help
packages, with `en-US/text/**/*.html` and the same below other languages.
"""

from __future__ import annotations

import argparse
import gettext
import html
import random
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import public_sets
from pairs import Pair

from dragoman_text.gates.prose import prose

TATOEBA = {"deu": "de", "fra": "fr", "spa": "es", "jpn": "ja"}
CATALOGUES = (
    "de fr es it pt pt_BR nl sv da nb fi et lv lt pl cs sk sl hr sr sr@latin ru uk bg ro hu el tr "
    "eu ca gl vi id ja ko zh_CN zh_TW th ar he fa hi ta ka"
)
SCRIPTS = {"zh_CN": "zh-Hans", "zh_TW": "zh-Hant", "sr@latin": "sr-Latn", "sr": "sr-Cyrl"}
_BLOCK = re.compile(r'<(p|h[1-6]|td) id="((?:par|hd)_id[^"]+)"[^>]*>(.*?)</\1>', re.DOTALL)
_FOLDER = re.compile('"(?:en-US|de|fr|ja)/')
_ACCELERATOR = re.compile(r"[_&~](?=\w)|\s*\([_&~]\w\)")


def tatoeba(folder: Path) -> Iterator[Pair]:
    """Yield English sentences with their translations, and the reverse."""
    for archive in sorted(folder.glob("*-eng.zip")):
        language = TATOEBA[archive.name[:3]]
        with zipfile.ZipFile(archive) as opened:
            member = next(
                name
                for name in opened.namelist()
                if Path(name).name.startswith(archive.name[:3]) and name.endswith(".txt")
            )
            for line in opened.read(member).decode().splitlines():
                english, other = line.split("\t")[:2]
                yield Pair("tatoeba", english, other, "en", language)
                yield Pair("tatoeba", other, english, language, "en")


def catalogues(folder: Path, *, accelerators: bool = False) -> Iterator[Pair]:
    """Yield the messages of user interfaces, without the marks of keyboard accelerators."""
    for tag in CATALOGUES.split():
        seen: set[tuple[str, str]] = set()
        for place in sorted((folder / tag / "LC_MESSAGES").glob("*.mo")):
            for pair in _messages(place):
                if pair not in seen and (accelerators or not any(map(_has_accelerator, pair))):
                    seen.add(pair)
                    language = SCRIPTS.get(tag, tag.replace("_", "-"))
                    yield Pair("catalogues", *pair, "en", language)


def _messages(place: Path) -> Iterator[tuple[str, str]]:
    try:
        with place.open("rb") as file:
            read = gettext.GNUTranslations(file)
    except (OSError, UnicodeDecodeError, ValueError, IndexError):
        return
    for source, target in vars(read)["_catalog"].items():
        if isinstance(source, str) and source and target:
            yield source.rsplit("\x04", 1)[-1], target


def _has_accelerator(text: str) -> bool:
    return _ACCELERATOR.search(text) is not None


def libreoffice_help(folder: Path) -> Iterator[Pair]:
    """Yield the blocks of the help, with their inline tags, from English and into English."""
    english = folder / "en-US" / "text"
    for language in ("de", "fr", "ja"):
        for place in sorted(english.rglob("*.html")):
            other = folder / language / "text" / place.relative_to(english)
            if not other.is_file():
                continue
            sources, targets = _blocks(place), _blocks(other)
            for name in sources.keys() & targets.keys():
                if sources[name] != targets[name]:
                    yield Pair("help", sources[name], targets[name], "en", language)
                    yield Pair("help", targets[name], sources[name], language, "en")


def _blocks(place: Path) -> dict[str, str]:
    text = place.read_text(encoding="utf-8")
    blocks = {name: " ".join(body.split()) for _tag, name, body in _BLOCK.findall(text)}
    # A block with several variants, of which the page shows one, is several texts.
    return {
        name: _FOLDER.sub('"', html.unescape(body))
        for name, body in blocks.items()
        if body and "switchinline" not in body
    }


_PUBLIC = {
    "ntrex": public_sets.ntrex,
    "flores": public_sets.flores,
    "wmt": public_sets.wmt,
    "wmt-systems": public_sets.wmt_systems,
    "tico": public_sets.tico,
    "po": public_sets.po_catalogs,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the folders, the size and the seed of the sample."""
    parser.add_argument("--tatoeba", type=Path, help="folder of *-eng.zip")
    parser.add_argument("--catalogues", type=Path, help="folder such as /usr/share/locale")
    parser.add_argument("--help-pages", type=Path, help="folder of LibreOffice's help")
    for name in _PUBLIC:
        parser.add_argument(f"--{name}", type=Path, help="see public_sets.py")
    parser.add_argument("--tsv", type=Path, nargs="*", default=[], help="see public_sets.py")
    parser.add_argument("--languages", nargs="*", help="target languages; all without")
    parser.add_argument("--pairs", type=int, default=0, help="pairs per corpus; 0 = all")
    parser.add_argument("--seed", type=int, default=1)


def sampled(given: argparse.Namespace) -> list[Pair]:
    """Return a random sample of each corpus, equally from its languages where they suffice."""
    readers = (
        (tatoeba, given.tatoeba),
        (catalogues, given.catalogues),
        (libreoffice_help, given.help_pages),
        *((reader, getattr(given, name.replace("-", "_"))) for name, reader in _PUBLIC.items()),
        *((public_sets.tsv, place) for place in given.tsv),
    )
    wanted = set(given.languages or ())
    chosen: list[Pair] = []
    for reader, folder in readers:
        if folder is not None:
            pairs = [pair for pair in reader(folder) if not wanted or pair.target_lang in wanted]
            chosen += _sample(pairs, given.pairs, random.Random(given.seed))
    return [pair for pair in chosen if not _untranslated(pair)]


def _untranslated(pair: Pair) -> bool:
    """Return whether the translation is the source, which is an error or a name."""
    return prose(pair.source) == prose(pair.target)


def _sample(pairs: list[Pair], size: int, chance: random.Random) -> list[Pair]:
    if not size:
        return pairs
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.source_lang, pair.target_lang].append(pair)
    each = -(-size // len(groups))
    return [
        pair for group in groups.values() for pair in chance.sample(group, min(each, len(group)))
    ]

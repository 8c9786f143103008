"""Tests of the TMX reader: units as people have them, and as nobody should."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from dragoman_producer.operations import tmx
from dragoman_producer.operations.text_files import InvalidFile
from dragoman_producer.operations.tmx import TmxUnit, read_tmx
from support.builders.tmx_files import HEADER, unit, units


def file(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "terms.tmx"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_units_have_their_texts_codes_and_line(tmp_path: Path) -> None:
    content = units(
        unit(("EN-us", "a &lt;b&gt; &amp; c"), ("de", "<bpt i='1'>&lt;b&gt;</bpt>A<ept i='1'/>")),
        "\n" + unit(("en", " x\n"), ("en", "second")),
    )
    assert list(read_tmx(file(tmp_path, content))) == [
        TmxUnit(1, "en", {"en-US": "a <b> & c", "de": "<b>A"}),
        TmxUnit(2, "en", {"en": " x\n"}, number=2, repeated="en"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_the_declared_encoding_is_used(tmp_path: Path, encoding: str) -> None:
    head = HEADER.replace('version="1.0"', f'version="1.0" encoding="{encoding}"', 1)
    content = f"{head}{unit(('en', 'door'), ('de', 'Tür'))}</body></tmx>".encode(encoding)
    assert next(iter(read_tmx(file(tmp_path, content)))).texts["de"] == "Tür"


BOMB = (
    '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    f"<tmx><header srclang='en'/><body>{unit(('en', '&b;'), ('de', 'x'))}</body></tmx>"
)
EXTERNAL = BOMB.replace('<!ENTITY a "aaaaaaaaaa">', '<!ENTITY a SYSTEM "file:///etc/passwd">')
INVALID_TMX = {
    "entities": (BOMB, "line 1: the file declares an entity (a)"),
    "an external entity": (EXTERNAL, "line 1: the file declares an entity (a)"),
    "an unknown entity": (units(unit(("en", "&nbsp;"))), "line 1: not well-formed XML"),
    "cut off": (units(unit(("en", "a"), ("de", "b")))[:-20], "not well-formed XML"),
    "empty": ("", "not well-formed XML: no element found"),
    "a table": ("en\tde\n", "line 1: not well-formed XML"),
    "another document": ("<html/>", "line 1: not TMX: the outermost element is <html>"),
    "not the encoding": (
        units(unit(("en", "ü"))).encode("latin-1"),
        "not well-formed XML: not well-formed (invalid token)",
    ),
    "an unknown encoding": (
        '<?xml version="1.0" encoding="klingon"?><tmx/>',
        "line 1: ",
    ),
    "deep": ("<tmx>" + "<a>" * 100_000, "line 1: elements are nested more than 64 deep"),
    "a large comment": ("<tmx><!--" + "x" * 10_000_000, "a tag or comment of more than"),
    "a large attribute": ("<tmx a='" + "x" * 10_000_000, "a tag or comment of more than"),
}


@pytest.mark.parametrize(("content", "named"), INVALID_TMX.values(), ids=INVALID_TMX)
def test_an_invalid_tmx_is_refused_by_file_and_line(
    tmp_path: Path, content: str | bytes, named: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        list(read_tmx(file(tmp_path, content)))
    assert named in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_long_tmx_is_read_in_bounded_memory(tmp_path: Path) -> None:
    one = unit(("en", "gate " * 50), ("de", "Tor " * 50)) + "<!-- " + "x" * 500 + " -->"
    path = file(tmp_path, units(one * 20_000))
    assert path.stat().st_size > 4 * tmx._LARGEST_TOKEN
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_tmx(path)) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


INVALID_UNITS = {
    "an entity of a DTD": (unit(("en", "a &copy;"), ("de", "b")), "&copy; is not one of", {"de"}),
    "no language": ("<tu><tuv><seg>a</seg></tuv></tu>", "a <tuv> without xml:lang", set()),
    "no tag": (unit(("en", "a"), ("german", "b")), "'german' is not a language", {"en"}),
    "a long tag": (unit(("x" * 10_000, "a"), ("de", "b")), "is not a language", {"de"}),
    "a long segment": (
        unit(("en", "x" * (tmx.LONGEST_SEGMENT + 1)), ("de", "b")),
        "a segment has more than 131,072 characters",
        {"de"},
    ),
    "many languages": (
        unit(*((f"en-x-a{number}", "a") for number in range(300))),
        "a unit has more than 256 languages",
        None,
    ),
}


@pytest.mark.parametrize(("bad", "why", "kept"), INVALID_UNITS.values(), ids=INVALID_UNITS)
def test_an_invalid_unit_is_reported_and_the_others_are_read(
    tmp_path: Path, bad: str, why: str, kept: set[str] | None
) -> None:
    good = unit(("en", "gate"), ("de", "Tor"))
    content = units(good, "\n", bad, "\n", good)
    if "&copy;" in bad:
        content = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">' + content.removeprefix(
            '<?xml version="1.0"?>'
        )
    first, second, third = read_tmx(file(tmp_path, content))
    assert first.problem is third.problem is None
    assert first.texts == third.texts == {"en": "gate", "de": "Tor"}
    assert (second.number, second.line) == (2, 2)
    assert second.problem is not None
    assert why in second.problem
    assert len(second.problem) < 200
    assert kept is None or second.texts.keys() == kept


def test_units_before_an_unreadable_place_are_read(tmp_path: Path) -> None:
    """All of them lie in one chunk of the file, which the parser is given at once."""
    content = units(unit(("en", "a"), ("de", "b")) * 3).replace("</body>", "<")
    found = read_tmx(file(tmp_path, content))
    assert [next(found).number for _ in range(3)] == [1, 2, 3]
    with pytest.raises(InvalidFile, match="not well-formed"):
        next(found)


@pytest.mark.parametrize("tag", ["*all*", "klingonese", ""])
def test_a_header_without_a_known_language_gives_units_without_source(
    tmp_path: Path, tag: str
) -> None:
    content = units(unit(("en", "a"), ("de", "b"))).replace('srclang="en"', f'srclang="{tag}"')
    [one] = read_tmx(file(tmp_path, content))
    assert (one.source_lang, one.problem) == (None, None)

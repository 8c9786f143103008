"""Tests of Apple's string dictionaries."""

from __future__ import annotations

import plistlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_documents.codec import Options
from dragoman_documents.registry import codec
from support.documents.laws import (
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
    translations,
)

CODEC = codec("stringsdict")
POLISH = Options("pl", "en")
HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN"'
    ' "http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n<plist version="1.0">\n<dict>\n'
)
MESSAGE = """\t<key>{name}</key>
\t<dict>
\t\t<key>NSStringLocalizedFormatKey</key>
\t\t<string>{format}</string>
\t\t<key>files</key>
\t\t<dict>
\t\t\t<key>NSStringFormatSpecTypeKey</key>
\t\t\t<string>{kind}</string>
\t\t\t<key>NSStringFormatValueTypeKey</key>
\t\t\t<string>lld</string>
{forms}\t\t</dict>
\t</dict>
"""
FORMS = {"one": "%lld file &amp; more", "other": "%lld files &amp; more"}


def form(name: str, text: str) -> str:
    return f"\t\t\t<key>{name}</key>\n\t\t\t<string>{text}</string>\n"


def catalog(
    forms: dict[str, str] = FORMS,
    *,
    format_key: str = "%#@files@",
    kind: str = "NSStringPluralRuleType",
    more: str = "",
) -> bytes:
    spelled = "".join(form(*each) for each in forms.items())
    message = MESSAGE.format(name="a", format=format_key, kind=kind, forms=spelled + more)
    return f"{HEAD}{message}</dict>\n</plist>\n".encode()


def test_a_plural_gets_the_forms_of_the_language() -> None:
    found = assert_identity(CODEC, catalog(), POLISH)
    assert [(each.text, each.plural, each.place) for each in found.segments] == [
        ("1 file & more", "one", "a"), ("22 files & more", "few", "a"),
        ("21 files & more", "many", "a"), ("21 files & more", "other", "a"),
    ]  # fmt: skip
    answers = ["1 plik", "22 pliki", "21 <plików>", "21 pliku"]
    output = assert_read_back(CODEC, catalog(), answers, POLISH)
    wanted = dict(zip(["one", "few", "many", "other"], answers, strict=True))
    assert output == catalog({
        name: text.replace(text[:2].strip(), "%lld").replace("<", "&lt;").replace(">", "&gt;")
        for name, text in wanted.items()
    })  # fmt: skip
    assert plistlib.loads(output)["a"]["files"]["many"] == "%lld <plików>"


def test_a_plural_with_the_same_forms_stays_in_its_place_and_spelling() -> None:
    assert_itself_again(CODEC, catalog().replace(b"&amp; more", b"\n &#38; more "))
    output = assert_read_back(CODEC, catalog(), ["1 Datei", None], Options("de", "en"))
    assert output == catalog({**FORMS, "one": "%lld Datei"})


def test_text_around_a_plural_goes_into_its_forms_unless_all_translations_have_it() -> None:
    options = Options("de", "en")
    data = catalog({"one": "%lld file", "other": "%lld files"}, format_key="R&amp;D: %#@files@.")
    found = assert_identity(CODEC, data, options)
    assert [each.text for each in found.segments] == ["R&D: 1 file.", "R&D: 21 files."]
    assert_itself_again(CODEC, data)
    output = assert_read_back(CODEC, data, ["R&D: 1 Datei.", "R&D: 21 Dateien."], options)
    german = {"one": "%lld Datei", "other": "%lld Dateien"}
    assert output == catalog(german, format_key="R&amp;D: %#@files@.")
    output = assert_read_back(CODEC, data, ["1 Datei da.", None], options)
    german = {"one": "%lld Datei da", "other": "R&amp;D: %lld files"}
    assert output == catalog(german, format_key="%#@files@.")


@pytest.mark.parametrize(
    "data",
    [
        catalog(format_key="%@ %#@files@"),
        catalog(format_key="%#@files@ in %#@files@"),
        catalog(format_key="A<!-- note --> %#@files@"),
        catalog(format_key="%#@others@"),
        catalog(kind="NSStringOtherRuleType"),
        catalog({**FORMS, "few": "%lld files"}),
        catalog({"one": "%lld file"}),
        catalog({**FORMS, "one": "%lld"}),
        catalog(more="\t\t\t<!-- a note -->\n" + form("zero", "no files")),
        catalog(more=form("NSOther", "x") + form("zero", "no files")),
        catalog().replace(b"<string>%lld file ", b"<string x='y'>%lld file "),
        catalog().replace(b"\t\t<key>files", b"\t\t<key>b</key><dict/><key>files"),
    ],
)
def test_other_messages_are_left_alone_and_remarked(data: bytes) -> None:
    found = assert_identity(CODEC, data, POLISH)
    assert (found.segments, [each.place for each in found.remarks]) == ((), ["a"])


@pytest.mark.parametrize(
    "data",
    [
        catalog({"other": "%lld"}),
        b"<plist><dict/></plist>",
        b"<plist><array><string>A text</string></array></plist>",
        b"<plist><dict><key>a</key></dict></plist>",
        b"<plist><dict><string>A text</string><key>a</key></dict></plist>",
        b"<plist/>",
    ],
)
def test_what_has_no_text_has_no_segments(data: bytes) -> None:
    found = assert_identity(CODEC, data, POLISH)
    assert (found.segments, found.remarks) == ((), ())


_names = st.sampled_from(["zero", "one", "two", "few", "many", "other"])
_texts = st.sampled_from(["%lld a", "a b", "%lld of %lld a", "21 %1$d a", "", "%@ a"])


@pytest.mark.parametrize(
    "text", ["%lld &unknown; file", "%lld <!-- c --> file", "<b>%lld</b> file"]
)
@pytest.mark.parametrize("format_key", ["%#@files@", "You have %#@files@."])
def test_markup_in_a_form_stays(text: str, format_key: str) -> None:
    data = catalog({"one": text, "other": f"{text}s"}, format_key=format_key)
    found = assert_identity(CODEC, data)
    output = assert_read_back(CODEC, data, tagged(found)).decode()
    markup = text.replace("%lld", "").replace("file", "").strip()
    assert output.count(markup) == 2 * (markup != "<b></b>")


@given(
    st.dictionaries(_names, _texts),
    st.sampled_from(["de", "pl", "ja", "ar"]),
    st.sampled_from(["%#@files@", "%1$#@files@ x", "x %#@files@ x", "xx%#@files@"]),
    translations,
)
@settings(deadline=None)
def test_any_forms_and_translations_read_back(
    forms: dict[str, str], lang: str, format_key: str, text: str
) -> None:
    data, options = catalog(forms, format_key=format_key), Options(lang, "en")
    found = assert_identity(CODEC, data, options)
    answers = [f"{each.number or ''} {text}" for each in found.segments]
    held = plistlib.loads(
        assert_read_back(CODEC, data, [each.strip() for each in answers], options)
    )
    assert set(held["a"]) == {"NSStringLocalizedFormatKey", "files"}

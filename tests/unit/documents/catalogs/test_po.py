"""Tests of PO and POT files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.catalogs.po.codec import PoCodec
from dragoman_documents.catalogs.po.lines import quoted, value_of
from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.putting_back import put_back
from dragoman_documents.read_back import differing
from support.documents.laws import GERMAN, assert_identity, assert_read_back, translations

CODEC = PoCodec()
HEADER = """\
# German of an example
msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: de\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""
MESSAGES = """\
#: a.c:1
msgid "Open file"
msgstr ""

# said by a person
#, fuzzy, c-format
#| msgid "Close %s"
msgctxt "menu"
msgid ""
"Close "
"\\"%s\\"\\n"
msgstr "Schliesse \\"%s\\"\\n"

msgid "Done"
msgstr "Fertig"

#, python-format
msgid "%(count)d of the files"
msgid_plural "%(count)d files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "Old"
#~ msgstr "Alt"
"""
PO = (HEADER + MESSAGES).encode()


def spliced(data: bytes, texts: list[str | None], options: Options = GERMAN) -> str:
    return CODEC.splice(data, CODEC.extract(data, options), texts, options).decode()


def template(messages: str) -> bytes:
    head = """\
# SOME TITLE.
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: x\\n"
"Language: \\n"
"Content-Type: text/plain; charset=CHARSET\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

"""
    return (head + messages).encode()


def test_messages_are_segments_with_their_state() -> None:
    found = assert_identity(CODEC, PO).segments
    assert [(each.text, each.state, each.target) for each in found] == [
        ("Open file", "empty", None),
        ('Close "%s"', "draft", 'Schliesse "%s"'),
        ("Done", "done", "Fertig"),
        ("1 of the files", "empty", None),
        ("21 files", "empty", None),
    ]
    assert [each.context for each in found] == [None, "menu", None, None, None]
    assert [(each.plural, each.number) for each in found[3:]] == [("one", 1), ("other", 21)]
    assert [each.place for each in found[2:4]] == ["line 24", "line 28"]


def test_only_what_is_given_changes() -> None:
    output = spliced(PO, ["Datei \u00f6ffnen", None, None, None, None])
    assert output == PO.decode().replace('file"\nmsgstr ""', 'file"\nmsgstr "Datei \u00f6ffnen"')


def test_flags_of_an_obsolete_message_are_its_own() -> None:
    data = PO + b'\n#, fuzzy\n#~ msgid "x"\n#~ msgstr "y"\n\nmsgid "Last"\nmsgstr "Ende"\n'
    assert CODEC.extract(data, GERMAN).segments[-1].state == "done"


def test_a_new_translation_of_a_fuzzy_message_is_not_fuzzy() -> None:
    output = spliced(PO, [None, 'Schlie\u00dfe "%s"', None, None, None])
    assert '#, c-format\n#| msgid "Close %s"\n' in output
    assert 'msgstr "Schlie\u00dfe \\"%s\\"\\n"\n' in output


def test_drafts_are_fuzzy() -> None:
    options = Options("de", drafts=frozenset({0, 3}))
    texts = ["A", None, None, "1 B", "21 C"]
    output = spliced(PO, texts, options)
    assert '#: a.c:1\n#, fuzzy\nmsgid "Open file"' in output
    assert '#, fuzzy, python-format\nmsgid "%(count)d of the files"' in output
    assert 'msgstr[0] "%(count)d B"\nmsgstr[1] "%(count)d C"\n' in output
    extraction = CODEC.extract(PO, options)
    assert differing(CODEC, output.encode(), extraction, texts, options) == []


def test_each_form_of_the_language_gets_a_place() -> None:
    messages = 'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""'
    found = CODEC.extract(template(messages), Options("ru")).segments
    assert [each.text for each in found] == ["21 files", "22 files", "25 files"]
    output = spliced(template(messages), ["21 a", "22 b", "25 c"], Options("ru"))
    assert output.endswith('msgstr[0] "%d a"\nmsgstr[1] "%d b"\nmsgstr[2] "%d c"\n')
    assert_read_back(CODEC, template(messages), ["21 a", "22 b", "25 c"], Options("ru"))


def test_a_language_with_one_form_loses_the_empty_second_one() -> None:
    messages = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    output = spliced(template(messages), ["21 a"], Options("ja"))
    assert output.endswith('msgid_plural "%d files"\nmsgstr[0] "%d a"\n')


def test_a_template_gets_a_header() -> None:
    output = spliced(template('msgid "a"\nmsgstr ""\n'), ["\u00e4"], Options("zh-Hant"))
    assert '"Language: zh_Hant\\n"\n' in output
    assert '"Content-Type: text/plain; charset=UTF-8\\n"\n' in output
    assert '"Plural-Forms: nplurals=1; plural=0;\\n"\n' in output
    assert "fuzzy" not in output
    assert output.startswith("# SOME TITLE.\n")


def test_a_file_without_a_header_gets_one() -> None:
    data = b'msgid "a"\nmsgstr ""\n'
    output = assert_read_back(CODEC, data, ["\u00e4"]).decode()
    assert output.startswith('msgid ""\nmsgstr ""\n"Language: de\\n"\n')
    assert output.endswith('\n\nmsgid "a"\nmsgstr "\u00e4"\n')


def test_a_rule_that_does_not_fit_is_replaced_only_if_no_plural_is_filled() -> None:
    empty = PO.replace(b"Language: de", b"Language: ru")
    assert len(CODEC.extract(empty, Options("ru")).segments) == 6
    output = spliced(empty, [None, None, None, "21 a", "22 b", "25 c"], Options("ru"))
    assert "Plural-Forms: nplurals=3;" in output
    filled = empty.replace(b'msgstr[0] ""', b'msgstr[0] "%(count)d a"')
    extraction = CODEC.extract(filled, Options("ru"))
    assert len(extraction.segments) == 5
    assert [each.detail for each in extraction.remarks] == [
        "the header's Plural-Forms don't match ru"
    ]


def test_a_header_of_another_language_is_remarked() -> None:
    assert "Language is de" in CODEC.extract(PO, Options("fr")).remarks[0].detail


def test_a_message_with_a_form_that_stays_empty_is_not_begun() -> None:
    """gettext shows an empty form as nothing if the first one is filled."""
    extraction = CODEC.extract(PO, GERMAN)
    texts = [None, None, None, "1 Datei", "einige Dateien"]
    output = CODEC.splice(PO, extraction, texts, GERMAN)
    assert differing(CODEC, output, extraction, texts, GERMAN) == [3, 4]
    texts = [None, None, None, "eine andere", "21 Dateien"]
    output = CODEC.splice(PO, extraction, texts, GERMAN)
    assert differing(CODEC, output, extraction, texts, GERMAN) == []


def test_a_form_without_a_number_never_gets_that_of_the_general_form() -> None:
    message = 'msgid "one bird"\nmsgid_plural "%d birds"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    data = template(message)
    extraction = CODEC.extract(data, GERMAN)
    done = put_back(CODEC, data, extraction, [None, "21 V\u00f6gel"], GERMAN)
    assert b'msgstr[0] ""' in done.data
    assert "%d V\u00f6gel" in done.data.decode()
    assert b"21" not in done.data


LEFT_OVER = """\
#, c-format
msgid "%d place"
msgid_plural "%d places"
msgstr[0] ""
msgstr[1] "%d xyz"
"""


def test_python_is_given_its_placeholder_in_each_form() -> None:
    message = '#, python-format\nmsgid "one bird{}"\nmsgid_plural "%d birds{}"\nmsgstr[0] ""\n'
    for end in ("", " 1"):  # with a number of its own in the text no number stands for the count
        found = CODEC.extract(template(message.replace("{}", end)), GERMAN)
        assert not any("one" in each.text for each in found.segments)


@pytest.mark.parametrize("flags", ["c-format", "fuzzy, c-format"])
def test_forms_beyond_the_rule_leave_a_message_that_is_translated(
    flags: str, tmp_path: Path
) -> None:
    rule = "nplurals=1; plural=0"
    data = template(LEFT_OVER.replace("c-format", flags))
    data = data.replace(b"nplurals=INTEGER; plural=EXPRESSION", rule.encode())
    data = data.replace(b"Language: ", b"Language: km")
    options = Options("km")
    extraction = CODEC.extract(data, options)
    assert [each.place for each in extraction.remarks] == [
        f"line {extraction.segments[0].place[5:]}"
    ]
    assert CODEC.splice(data, extraction, [None], options) == data
    output = CODEC.splice(data, extraction, ["21 xyz"], options)
    assert b'msgstr[0] "%d xyz"\n' in output
    assert b"msgstr[1]" not in output
    assert_accepted_by_msgfmt(output, tmp_path)


@pytest.mark.parametrize(
    ("flag", "singular", "plural", "lang", "expected"),
    [
        ("python-format", "%(n)d bird", "%(n)d birds", "de", True),
        ("python-format", "%(n)d bird", "%(n)d birds", "fr", False),  # one: also 0
        ("python-format", "%(n)d bird", "%(n)d birds", "ru", False),
        ("python-format", "%d bird", "%d birds", "de", False),  # a TypeError in Python
        ("x", "%d bird", "%d birds", "de", False),
        ("c-format", "%d bird", "%d birds", "de", True),
        ("c-format", "%d%% bird", "%d%% birds", "de", True),
        ("c-format", "%d bird in %s", "%d birds in %s", "de", False),
        ("c-format", "%1$d bird in %2$s", "%1$d birds in %2$s", "de", False),
        ("python-brace-format", "{n} bird of {x}", "{n} birds of {x}", "de", True),
        ("python-brace-format", "{} bird", "{} birds", "de", True),
        ("python-brace-format", "{:d} bird of {}", "{:d} birds of {}", "de", False),
        ("qt-plural-format", "%n bird", "%n birds", "de", True),
    ],
)
def test_a_form_of_1_alone_may_lack_its_placeholder_where_the_program_can_format_it(
    flag: str, singular: str, plural: str, lang: str, expected: bool, tmp_path: Path
) -> None:
    message = f'#, {flag}\nmsgid "{singular}"\nmsgid_plural "{plural}"\nmsgstr[0] ""\n'
    data, options = template(message), Options(lang)
    extraction = CODEC.extract(data, options)
    one, *others = extraction.segments
    assert one.number_optional is expected
    assert not any(each.number_optional for each in others)
    text = one.text.replace("1 bird", "a bird")
    texts = [text, *(each.text for each in others)]
    output = CODEC.splice(data, extraction, texts, options)
    if expected:
        assert differing(CODEC, output, extraction, texts, options) == []
        assert_accepted_by_msgfmt(output, tmp_path)
    else:
        assert differing(CODEC, output, extraction, texts, options) == [0]


@pytest.mark.parametrize(
    ("singular", "plural", "expected"),
    [
        ("%d file", "%d files", ["1 file", "21 files"]),
        ("One file", "%d files", ["One file", "21 files"]),
        ("%s: %d file", "%s: %d files", ["%s: 1 file", "%s: 21 files"]),
        ("{n} of {total}", "{n} of {total}s", ["1 of {total}", "21 of {total}s"]),
        ("%(a)d of %(b)d", "%(a)d of %(b)ds", ["%(a)d of %(b)d", "%(a)d of %(b)ds"]),
        ("%d in 1 file", "%d in 1 files", ["%d in 1 file", "%d in 1 files"]),
        ("%d in 21 file", "%d in 21 files", ["1 in 21 file", "22 in 21 files"]),
        ("x%d file", "x%d files", ["x%d file", "x%d files"]),
        ("%1$d of %2$s", "%1$d of %2$ss", ["1 of %2$s", "21 of %2$ss"]),
        ("file", "files", ["file", "files"]),
    ],
)
def test_the_count_is_a_number_where_that_is_sure(
    singular: str, plural: str, expected: list[str]
) -> None:
    message = f'msgid "{singular}"\nmsgid_plural "{plural}"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    found = CODEC.extract((HEADER + message).encode(), GERMAN).segments
    assert [each.text for each in found] == expected


def test_text_that_looks_like_a_tag_is_a_code() -> None:
    data = (HEADER + 'msgid "see <g1> and <X2/>"\nmsgstr ""\n').encode()
    (segment,) = CODEC.extract(data, GERMAN).segments
    assert segment.text == "see <x1/> and <x2/>"
    output = assert_read_back(CODEC, data, ["<x2/> und <x1/>"])
    assert b'msgstr "<X2/> und <g1>"\n' in output


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_newlines_and_a_byte_order_mark_stay(newline: str, mark: bytes) -> None:
    data = mark + PO.decode().replace("\n", newline).encode()
    assert_identity(CODEC, data)
    output = assert_read_back(CODEC, data, ["a\nb", None, None, "1 x", "21 y"])
    assert output.startswith(mark)
    assert output.decode().count("\n") == output.decode().count(newline) * newline.count("\n")


def test_a_text_beyond_the_encoding_makes_the_file_utf_8() -> None:
    data = PO.replace(b"UTF-8", b"ISO-8859-1").replace(b"Fertig", b"Gr\xfc\xdfe")
    assert CODEC.extract(data, GERMAN).segments[2].target == "Gr\u00fc\u00dfe"
    output = assert_read_back(CODEC, data, ["\u20ac x", None, None, None, None])
    assert b"charset=UTF-8" in output
    assert "Gr\u00fc\u00dfe".encode() in output


@pytest.mark.parametrize("charset", [b"UTF-8", b"U", b"ASCII"])
def test_bytes_that_are_not_in_the_declared_charset_are_refused(charset: bytes) -> None:
    data = PO.replace(b"UTF-8", charset).replace(b"Fertig", b"Gr\xfc\xdfe")
    with pytest.raises(DocumentError, match="neither UTF-8 nor what it declares") as caught:
        CODEC.extract(data, GERMAN)
    assert caught.value.reason == "encoding"


@given(st.lists(translations, min_size=3, max_size=3))
def test_any_text_reads_back(texts: list[str]) -> None:
    assert_read_back(CODEC, PO, [*texts, None, None])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_string_is_quoted_and_read(text: str) -> None:
    assert value_of(quoted(text)) == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a " * 39, ["a " * 38, "a "]),
        (f"{'a' * 80} b", ["a" * 80 + " ", "b"]),
        (f"{'a' * 74}  \nb", ["a" * 74 + "  \\n", "b"]),
        (f"{'a' * 74}\u00a0b\\n", ["a" * 74 + "\u00a0", "b\\\\n"]),
        (f"{'a' * 74}\tb\n\nc", ["a" * 74 + "\\t", "b\\n", "\\n", "c"]),
    ],
)
def test_lines_break_between_words_as_gettext_breaks_them(text: str, lines: list[str]) -> None:
    assert quoted(text).split("\n") == ['""', *(f'"{line}"' for line in lines)]


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b'msgid "a"\n',
        b'msgid "a\nmsgstr ""\n',
        b'msgstr "a"\n',
        b'msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n',
        b'msgid "a"\nmsgstr[0] "c"\n',
        b'msgid "a"\nmsgstr "c"\nmsgstr "d"\n',
        b'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\nmsgstr[0] "d"\n',
        b'"a"\n',
    ],
)
def test_what_is_no_po_file_is_refused_with_its_line(data: bytes) -> None:
    with pytest.raises(DocumentError, match=r"line \d") as caught:
        CODEC.extract(data, GERMAN)
    assert caught.value.reason == "corrupt"


def test_a_huge_string_takes_linear_time() -> None:
    for body in ("x" * 2**17, "\\\\" * 2**16, '"\n"' * 2**16, "\\n" * 2**16, "<g1>" * 2**15):
        data = (HEADER + f'msgid "a{body}"\nmsgstr ""\n').encode()
        extraction = assert_identity(CODEC, data)
        assert_read_back(CODEC, data, [extraction.segments[0].text])


@pytest.mark.parametrize(
    ("singular", "plural", "lang", "expected"),
    [
        ("%d file", "%d files", "ru", ["21 files", "22 files", "25 files"]),
        ("%d file", "%d files", "fr", ["1 file", "21 files"]),
        ("One file", "%d files", "fr", ["1 files", "21 files"]),
        ("file", "files", "ru", ["file", "files", "files"]),
    ],
)
def test_a_number_has_the_form_of_the_source_language(
    singular: str, plural: str, lang: str, expected: list[str]
) -> None:
    message = f'msgid "{singular}"\nmsgid_plural "{plural}"\nmsgstr[0] ""\n'
    found = CODEC.extract(template(message), Options(lang)).segments
    assert [each.text for each in found] == expected


def assert_accepted_by_msgfmt(output: bytes, folder: Path) -> None:
    assert shutil.which("msgfmt"), "gettext is not installed; run make services"
    (folder / "out.po").write_bytes(output)
    done = subprocess.run(
        ["msgfmt", "--check-format", "--check-domain", "-o", folder / "out.mo", folder / "out.po"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("lang", ["de", "ru", "ja", "ar"])
def test_msgfmt_accepts_what_is_made_of_a_template(lang: str, tmp_path: Path) -> None:
    messages = (
        '#, c-format\nmsgid "%d file\\n"\nmsgid_plural "%d files\\n"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n\nmsgid "a"\nmsgstr ""\n\n'
        'msgid "untranslated"\nmsgid_plural "forms"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    )
    data = template(messages).replace(b"Project-Id-Version: x", b"Project-Id-Version: y 1")
    extraction = CODEC.extract(data, Options(lang))
    texts = [None if "f" in each.text[:1] else f"[x] {each.text}" for each in extraction.segments]
    assert_accepted_by_msgfmt(CODEC.splice(data, extraction, texts, Options(lang)), tmp_path)

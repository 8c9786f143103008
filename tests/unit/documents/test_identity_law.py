"""A document whose texts did not change is its source, byte by byte; what still stands is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import Options
from dragoman_documents.recognition import format_of
from dragoman_documents.registry import codec
from support.documents.additions import without_additions
from support.documents.laws import GERMAN, assert_linear

SAMPLES = Path(__file__).parents[2] / "data" / "documents"
SAME = Options("en", "en", in_place=True)


def _format(path: Path) -> str:
    return "chrome" if path.parent.name == "chrome" else format_of(path) or ""


FILES = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file()]


def answered(name: str, data: bytes, options: Options = SAME) -> bytes:
    """Return a document whose segments are answered by their own texts."""
    own = codec(name)
    found = own.extract(data, options)
    return own.splice(data, found, [each.text for each in found.segments], options)


def translated(name: str, source: str, *pairs: tuple[str, str]) -> str:
    """Return a document in whose segments some words are others."""
    own, data = codec(name), source.encode()
    found = own.extract(data, SAME)
    texts = [each.text for each in found.segments]
    for old, new in pairs:
        texts = [text.replace(old, new) for text in texts]
    return own.splice(data, found, texts, SAME).decode()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_sample_whose_texts_did_not_change_stays_as_it_is(path: Path) -> None:
    assert answered(_format(path), path.read_bytes()) == path.read_bytes()


YAML = r"""
plain: it wraps its
    lines

    and paragraphs
list: word, word no [brackets] {or} braces - .start -s
emoji: 👋 word, 'quoted' "so"
single: '  It''s  a word
  and more '
double: "  \u2026word \x41\/ \_and \
  more\n  "
ends: "word\

  more"
folded: >-
  word and
  more lines  
  here

  paragraph
    more indented
      lines

  the end
literal: |2
    word first
  then
     
  end
flow: [word, {a: "b, c", d: it is, e: 'f''s'}, http://example.org/a b]
tagged: !!str word
dots: ...a word
dash: -s, --source word
quote: word "quoted" 'text'
colon: a word:word
"""  # noqa: W291, W293
PROPERTIES = r"""
long = word one, \
       two, \
    thr\
ee
escaped=\u00fcber \u00DCber word \: \= \ud83d\uDE00
blank=\  two blanks word
"""
STRINGS = r'"a" = "\U00dcber \u00fcber word \'s \"q\"' + '\nline\\n \\101\\ud83d\\uDE00";\n'
JSON = r"""{"a": "\u2026word\/ \u00e4\u00E4 \ud83D\uDE00 \"q\"", "b": ["…word ü", "  two  "],
  "f_one": "{{count}} w\u2026rd", "f_other": "{{count}} w\u2026rds \/"}"""
CSV = """id,text,more
1,5" word  ,"a ""word"", b"
2,word "w"
3,"two
words", word's
"""
PO = r"""# comment
msgid ""
msgstr ""
"Project-Id-Version: x\n"

#, fuzzy, c-format
msgid "Close \"%s\"\n"
msgstr "Schliesse\t\"%s\"\n"

#, fuzzy
msgctxt "menu"
msgid ""
"Two "
"lines\n"
msgstr ""

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "Done"
msgstr "Fertig"

#~ msgid "Old"
#~ msgstr "Alt"
"""
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language='en' original="a &amp; b"><body>
  <trans-unit id="1"><source>word &quot;so&quot; > <g id="1">b</g></source></trans-unit>
  <trans-unit id="2" approved="no">
    <source>word</source>
    <target state='new'/><alt-trans><target>x</target></alt-trans>
  </trans-unit>
  <trans-unit id="3"><source>word</source><target state="final" >  Wort </target></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0"
  ><file id="f"><unit id="u"><segment><source>word</source></segment>
  <segment state="initial" id="s"><source>a &#8230; word</source> <target>W</target></segment>
</unit></file></xliff>
"""
QT = """<TS version="2.1"><context><name>a</name><message>
  <source>word &apos;so&apos;</source> <translation type="unfinished"/></message>
<message numerus="yes"><source>%n word(s)</source><translation type='unfinished'>
  <numerusform></numerusform><numerusform>x</numerusform></translation></message>
</context></TS>
"""
XCSTRINGS = """{
  "sourceLanguage" : "en",
  "strings" : {
    "A \\u2026 word" : {

    },
    "Held" : {
      "comment" : "\\/",
      "localizations" : {
        "de" : { "stringUnit" : { "state" : "new", "value" : "" } },
        "fr" : {
          "stringUnit" : { "state" : "translated", "value" : "Tenu" }
        }
      }
    }
  },
  "version" : "1.0"
}"""
ADDED = [
    ("csv", CSV), ("tsv", CSV.replace(",", "\t")), ("po", PO), ("xliff", XLIFF), ("xliff", XLIFF_2),
    ("qt", QT), ("xcstrings", XCSTRINGS),
]  # fmt: skip
ICU = [
    "{n,plural,=0 {no word} one {# word}\n  other {# words {x}}}",
    "You have { n , plural , offset:1 one{a word} other {# words} } in {folder}",
    "{n, plural, other{# words}}",
    "{ g , select , a {his word} other { their word } }",
    "{n, plural, other{# words} one{# word}}.",
    "It''s {g, select, a{one '{'word'}' isn''t it} other{a {n, plural, one{# w'x} other{ws}}.}}",
    "{n, selectordinal, one{#st word} two{#nd word} few{#rd word} other{#th word}}",
    "{n, plural, one{{d, date, short} word} other{'#' words}}",
]
ANDROID = r"""<?xml version="1.0" encoding="utf-8"?>
<resources>
  <string name="a">"  two  blanks word  "</string>
  <string name="b">word\u2026 isn\'t &#8230; &quot;so&quot; > \"q\"</string>
  <string name="c">
    word on
    lines \
and  blanks\n
    here
  </string>
  <string name="d"><![CDATA[<b>word</b> isn\'t]]></string>
  <string name="e">word "in  quotes" and <b>"bold  w"</b> \u0020</string>
  <string name="f">@ word</string>
  <string name="g">\@word word</string>
  <string name="h">"isn't a word\u2026"</string>
  <string name="i">&#32;a word <xliff:g id="x">%1$s</xliff:g>, isn&apos;t it</string>
  <string name="j">\u0020\u0020a word \\ \t x</string>
  <plurals name="p">
    <item quantity="one">%d w\u00f6rd</item>
    <item quantity="other"> "%d  w\u00F6rds" </item>
  </plurals>
</resources>
""".replace("<resources>", '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">', 1)
RESX = """<root><data name="a"><value>  word &quot;so&quot; > &#xe9;
  lines </value></data><data name="b"><value><![CDATA[word <b> & c]]></value></data></root>
"""
ODD = {
    "android": ANDROID,
    "json": JSON,
    "jsonl": JSON.replace("\n", ""),
    "properties": PROPERTIES,
    "resx": RESX,
    "strings": STRINGS,
    "yaml": YAML,
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_odd_spellings_of_texts_that_did_not_change_stay(name: str, newline: str) -> None:
    data = ODD[name].replace("\n", newline).encode()
    assert answered(name, data) == data


@pytest.mark.parametrize("name", ODD)
def test_odd_spellings_that_still_stand_are_kept_beside_other_words(name: str) -> None:
    assert translated(name, ODD[name], ("word", "Wort")) == ODD[name].replace("word", "Wort")


@pytest.mark.parametrize(("name", "source"), ADDED)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_is_added_beside_a_source_can_be_taken_out_again(
    name: str, source: str, newline: str
) -> None:
    data = source.replace("\n", newline).encode()
    output = answered(name, data, GERMAN)
    assert output != data
    assert without_additions(name, data, output) == data


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_cells_that_are_written_over_keep_their_spelling(newline: str) -> None:
    data = CSV.replace("\n", newline).encode()
    assert answered("csv", data) == data
    output = translated("csv", CSV, ("word", "Wort"))
    assert output == CSV.replace("word", "Wort")


@pytest.mark.parametrize(
    ("source", "text", "written"),
    [
        ("a: one two\n  three four\n", "eins zwei drei vier", "a: eins zwei\n  drei vier\n"),
        ("a: one two\n  three four\n", "x: y", 'a: "x: y"\n'),
        ("a: one two\n", "x, y [z]", "a: x, y [z]\n"),
        ("[one two]", "x, y", '["x, y"]'),
        ("a: >\n  one two\n  three four\n", "eins zwei  x", "a: >\n  eins\n  zwei  x\n"),
        ("a: >\n  one\n  two\n", "x\ny", "a: >\n  x\n\n  y\n"),
        ("a: one\n\n  two\n", "x\ny\nz", "a: x\n\n  y\n\n  z\n"),
        ("a: 'one\n\n  two'\n", "x\ny\nz", "a: 'x\n\n  y\n\n  z'\n"),
        ('a: "one \\u2026"', "zwei \u2026\u2026", 'a: "zwei \\u2026\\u2026"'),
        ('a: "a\\u2026 \u2026"', "zwei \u2026", 'a: "zwei \u2026"'),
    ],
)
def test_a_changed_text_keeps_of_yaml_what_it_can_hold(
    source: str, text: str, written: str
) -> None:
    own = codec("yaml")
    found = own.extract(source.encode(), SAME)
    assert own.splice(source.encode(), found, [text], SAME).decode() == written


_letters = st.text("ab \n\t'\"\\:#,-[{?%\u2026\u00a0\u00e9\U0001f600", min_size=1, max_size=20)


@pytest.mark.parametrize("message", ICU)
def test_an_icu_message_whose_texts_did_not_change_stays(message: str) -> None:
    data = json.dumps({"a": message}).encode()
    assert codec("json").extract(data, SAME).segments
    assert answered("json", data) == data
    assert translated("json", data.decode(), ("word", "Wort")) == data.decode().replace(
        "word", "Wort"
    )


_blank = st.sampled_from(["", " ", "\n  "])
_words = st.lists(st.sampled_from(["a ", "b", "{x}", "~", "'{'", "\u00e9 "]), max_size=4).map(
    lambda words: f"w{''.join(words)}w"
)


@st.composite
def _messages(draw: st.DrawFn, depth: int = 0) -> str:
    kind = draw(st.sampled_from(["plural", "select"])) if depth < 2 else ""
    if not kind:
        return draw(_words)
    inner = _words if kind == "plural" else _messages(depth + 1)
    names = {"plural": ["=0", "one", "other"], "select": ["a", "b", "other"]}[kind]
    arms = [
        f"{draw(_blank)}{name}{draw(_blank)}{{{draw(inner)}{'#' if kind == 'plural' else ''}}}"
        for name in draw(st.permutations(names))
    ]
    head = f"{{{draw(_blank)}n{depth}{draw(_blank)},{draw(_blank)}{kind}{draw(_blank)},"
    return f"{draw(_words)} {head}{''.join(arms)}{draw(_blank)}}}{draw(_words)}"


@given(_messages(), st.sampled_from(["'", "''"]))
def test_an_icu_message_of_any_blanks_and_quotes_stays(message: str, apostrophe: str) -> None:
    data = json.dumps([re.sub("~+", apostrophe, message)]).encode()
    assert answered("json", data) == data


@given(
    st.lists(_letters.map(lambda text: f"a{text}b"), min_size=1, max_size=3),
    st.sampled_from([None, '"', "'", "|", ">"]),
    st.booleans(),
    st.sampled_from([5, 20, 80]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_yaml_of_any_style_whose_texts_did_not_change_stays(
    texts: list[str], style: str | None, flow: bool, width: int, newline: str, unicode: bool
) -> None:
    data = yaml.dump(
        {"a": texts[0], "b": texts}, default_style=style, default_flow_style=flow,
        width=width, line_break=newline, allow_unicode=unicode,
    ).encode()  # fmt: skip
    assert answered("yaml", data) == data


_unit = st.sampled_from([
    "a", "b ", "\u00e9", "\\u00e9", "\\u00E9", "\\n", "\\t", '\\"', "\\\\", "\\ud83d\\ude00",
    "\U0001f600", "\\ud83d",
])  # fmt: skip
_written = st.lists(_unit, max_size=12).map(lambda units: f"a{''.join(units)}b")


@given(st.lists(st.one_of(_written, _written.map(lambda text: text + "\\/")), min_size=1))
def test_json_of_any_escapes_whose_texts_did_not_change_stays(values: list[str]) -> None:
    data = ("[" + ", ".join(f'"{value}"' for value in values) + "]").encode()
    json.loads(data)
    assert answered("json", data) == answered("jsonl", data) == data


@given(st.lists(st.one_of(_unit, st.sampled_from(["\\:", "\\\n  ", "\\\r\n", "\\ "])), max_size=12))
def test_properties_of_any_escapes_whose_texts_did_not_change_stay(units: list[str]) -> None:
    for end in ("b", "", "\\\n"):
        data = f"k = a{''.join(units)}{end}\n".encode()
        assert answered("properties", data) == data
    quoted = f'k = "a{"".join(units)}b";\n'.encode()
    assert answered("strings", quoted) == quoted


_of_xml = st.sampled_from([
    "a ", "b", "\u00e9", "&#8230;", "&#x2026;", "\u2026", "&quot;", "&amp;", "&lt;", "&gt;", ">",
    "\r\n", "<!-- c -->", "<![CDATA[ <b> ]]>", "<b>", "</b>",
])  # fmt: skip
_of_android = st.one_of(
    _of_xml,
    st.sampled_from(
        ["\\u2026", "\\'", "'", '\\"', '"', "\\n", "\\ ", "  ", "\n   ", "\\@", "&#92;", "&#32;"]
    ),
)


def _balanced(parts: list[str]) -> str:
    """Return markup whose elements are closed."""
    found, depth = list[str](), 0
    for part in parts:
        depth += {"<b>": 1, "</b>": -1}.get(part, 0)
        if depth >= 0:
            found.append(part)
        depth = max(depth, 0)
    return "".join([*found, "</b>" * depth])


@given(st.lists(_of_xml, max_size=12).map(_balanced))
def test_resources_of_any_references_whose_texts_did_not_change_stay(content: str) -> None:
    data = f'<root><data name="a"><value>{content}w</value></data></root>'.encode()
    assert answered("resx", data) == data


@given(st.lists(_of_android, max_size=12).map(_balanced), st.sampled_from(["", '"']))
def test_strings_of_android_of_any_escapes_whose_texts_did_not_change_stay(
    content: str, quote: str
) -> None:
    if "<" in content:  # a quote alone before markup is no part of a text
        content, quote = re.sub('\\\\?"|&quot;', "", content), ""
    data = f'<resources><string name="a">{quote}{content}w{quote}</string></resources>'.encode()
    assert answered("android", data) == data


_cells = st.text('ab ",\u00e9\n', max_size=8)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@given(st.lists(st.lists(_cells, min_size=2, max_size=3), min_size=1, max_size=4))
def test_tables_of_any_cells_whose_texts_did_not_change_stay(rows: list[list[str]]) -> None:
    spelled = [
        [cell if re.fullmatch(r'[^",\n][^,\n]*', cell) else _quoted(cell) for cell in row]
        for row in rows
    ]
    data = "\n".join(",".join(row) for row in spelled).encode()
    assert answered("csv", data) == data
    assert without_additions("csv", data, answered("csv", data, GERMAN)) == data


_message = st.text('ab \u00e9"\n\\', max_size=90).map(lambda text: json.dumps(f"a{text}"))


@given(st.lists(st.tuples(_message, st.sampled_from(["", "#, fuzzy\n", "#, c-format, fuzzy\n"]))))
def test_what_is_added_to_any_messages_of_gettext_can_be_taken_out(
    messages: list[tuple[str, str]],
) -> None:
    entries = [
        f'{flags}msgid ""\n{text}\nmsgstr ' + (text if flags else '""') + "\n"
        for text, flags in messages
    ]
    data = "\n".join(entries).encode()
    assert without_additions("po", data, answered("po", data, GERMAN)) == data


@given(st.lists(_of_xml, max_size=12).map(_balanced))
def test_what_is_added_to_any_units_of_xliff_can_be_taken_out(content: str) -> None:
    data = XLIFF.replace("word", f"w{content}w", 1).encode()
    output = answered("xliff", data, GERMAN)
    assert without_additions("xliff", data, output) == data
    assert f">w{content}w ".encode() in output.split(b"<target", 1)[1]


@pytest.mark.parametrize(
    ("name", "start", "unit", "end"),
    [
        (
            "android",
            '<resources><string name="a">a',
            '\\u2026 "b"&quot;\n ',
            "</string></resources>",
        ),
        (
            "resx",
            "<root><data name='a'><value>a",
            "&#8230;<b>&amp;</b>\r\n",
            "</value></data></root>",
        ),
        ("yaml", "a: >\n  a", "b\n  c\n\n  d\n    e\n  ", "f\n"),
        ("yaml", 'a: "a', "b\n  c\\u2026\\\n \\n", 'f"\n'),
        ("properties", "a = a", "\\u2026 \\\n  \\:", "b\n"),
        ("json", '["{n, plural, other{a', "'{' {x} \\u2026", '}}"]'),
    ],
)
def test_twice_the_text_takes_twice_the_steps_to_write(
    name: str, start: str, unit: str, end: str
) -> None:
    def call(size: int) -> Callable[[], object]:
        data = f"{start}{unit * size}{end}".encode()
        found = codec(name).extract(data, SAME)
        texts = [each.text for each in found.segments]
        return lambda: codec(name).splice(data, found, texts, SAME)

    assert_linear(call, 100)

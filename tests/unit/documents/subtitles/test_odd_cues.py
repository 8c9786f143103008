"""Tests of cues as tools and people leave them: odd times, shapes, sounds, songs, markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import Options
from dragoman_documents.read_back import differing, usable
from dragoman_documents.subtitles.srt_vtt import CODECS, SubtitleCodec
from support.documents.laws import GERMAN, assert_itself_again, assert_read_back, tagged

SRT, VTT = CODECS["srt"], CODECS["vtt"]
TIMES = "00:00:0{0}.000 --> 00:00:0{0}.900\n"


def texts_of(codec: object, text: str) -> list[str]:
    assert isinstance(codec, SubtitleCodec)
    assert_itself_again(codec, text.encode())
    found = codec.extract(text.encode(), GERMAN)
    assert_read_back(codec, text.encode(), tagged(found))
    return [each.text for each in found.segments]


def cue(text: str, *, vtt: bool = False) -> str:
    return ("WEBVTT\n\n" if vtt else "1\n") + TIMES.format(1) + text + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<i>Hello</i> my friend.", "<g1>Hello</g1> my friend."),
        ("<i>Hello</i> my <i>friend</i>", "<g1>Hello</g1> my <g2>friend</g2>"),
        ("<b><i>Hello</i> my</b> friend.", "<g1><g2>Hello</g2> my</g1> friend."),
        ("<i>Hello my friend.</i>", "Hello my friend."),
    ],
)
@pytest.mark.parametrize("vtt", [False, True])
def test_a_cue_that_begins_with_markup_keeps_its_rest(text: str, expected: str, vtt: bool) -> None:
    assert texts_of(VTT if vtt else SRT, cue(text, vtt=vtt)) == [expected]


@pytest.mark.parametrize(
    "times",
    [
        "-00:00:03,000 --> 00:00:04,000", "00:00:03,000 -> 00:00:04,000",
        "00:00:03;000 --> 00:00:04;000", "00:00:03.000 \u2192 00:00:04.000",
        "00:00:03,000 \u2013> 00:00:04,000", "00:00:03,000 --&gt; 00:00:04,000",
        "00:00:03.00,00:00:04.00", "00:00:03,000 - 00:00:04,000", "00:00:03,000",
        "00:00:03,000 -->", "--> 00:00:04,000", "0:0 0:03,000 --> x",
        "00.00.03,000 -> 00.00.04,000",
        "00:00:03,00O --> 00:00:04,000",
    ],
)  # fmt: skip
@pytest.mark.parametrize("number", ["2\n", "#2\n", "2.\n", ""])
def test_a_line_with_odd_times_is_no_text_and_begins_a_cue(times: str, number: str) -> None:
    text = f"{cue('First text.')}\n{number}{times}\nSecond text.\n"
    assert texts_of(SRT, text) == ["First text.", "Second text."]
    (remark,) = SRT.extract(text.encode(), GERMAN).remarks
    assert (remark.place, remark.count) == (f"line {5 + bool(number)}", 1)


@pytest.mark.parametrize(
    "text", ["It grew 3.5 -> 4.2.", "At 10:30:15\nor 10:30 - 11:45.", "Press A --> B.", "4 -> 5"]
)
def test_arrows_and_times_of_day_are_text(text: str) -> None:
    assert not SRT.extract(cue(text).encode(), GERMAN).remarks


def test_a_line_with_an_arrow_ends_a_cue_of_webvtt_and_players_do_not_show_what_follows() -> None:
    text = cue("A text\n-00:01.000 --> 00:02.000\nnot shown", vtt=True)
    assert texts_of(VTT, text) == ["A text"]
    assert texts_of(VTT, f"WEBVTT\n\nNOTE a --> b\nc\n\n{TIMES.format(1)}Text\n") == ["Text"]


@pytest.mark.parametrize(
    "text", ["00:00:01 -> 00:00:02", "x 00:00:01,000 \u2192 1:2", "-00:00:01,000 --> x", "1 --> x"]
)
def test_a_translation_that_reads_as_odd_times_is_left_out(text: str) -> None:
    found = SRT.extract(cue("A text.").encode(), GERMAN)
    output = SRT.splice(cue("A text.").encode(), found, [text], GERMAN)
    assert output == cue("A text.").encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{\\an8}{\\p1}m 0 0 l 100 0 100 100 0 100{\\p0}", []),
        ("{\\an8}m 12 34 b 56 78 90 12 34 56 l 7 8", []),
        ("m 12 34 l -5.5 8\nA text", ["A text"]),
        ("{\\p2\\bord0}m 0 0{\\c&H1&} l 1 1{\\p0}A text", ["A text"]),
        ("{\\pos(1,2)\\p1}m 0 0 l 1 1", []),
        ("A {\\p1}m 0 0 l 1 1{\\p0} text", ["A <x1/> text"]),
        ("{\\pos(192,210)\\fad(200,200)}Welcome.", ["Welcome."]),
        ("m 12 34 is a distance", ["m 12 34 is a distance"]),
    ],
)
@pytest.mark.parametrize("vtt", [False, True])
def test_shapes_are_no_text(text: str, expected: list[str], vtt: bool) -> None:
    if vtt and "<x1/>" not in str(expected):
        text = text.replace("{\\an8}", "").replace("{\\pos(192,210)\\fad(200,200)}", "")
    found = texts_of(VTT if vtt else SRT, cue(text, vtt=vtt))
    assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[DOOR OPENS]\nMAN: Come in!", ["[DOOR OPENS]", "MAN: Come in!"]),
        ("(door opens)\nCome in\nand sit!", ["(door opens)", "Come in and sit!"]),
        ("MAN: Come in and\nsit!\nWOMAN #2: No.", ["MAN: Come in and sit!", "WOMAN #2: No."]),
        ("- Come in and\nsit!\n- No.", ["Come in and sit!", "No."]),
        ("<i>[MUSIC]\n- Hello.</i>", ["[MUSIC]", "Hello."]),
        ("He said this: yes\n(and so) well", ["He said this: yes (and so) well"]),
        ("\u266a One ♪\n\u266a Two ♪", ["\u266a One ♪", "\u266a Two ♪"]),
        ("\u266a I want to hold\nyour hand ♪", ["\u266a I want to hold your hand ♪"]),
    ],
)
def test_sounds_and_speakers_are_lines(text: str, expected: list[str]) -> None:
    assert texts_of(SRT, cue(text)) == expected


def test_a_song_and_an_utterance_keep_the_number_of_their_lines() -> None:
    text = cue("\u266a La la\nla la ♪\n[LAUGHS]\nMAN: Come in and\nsit!")
    texts = ["\u266a Lala lalala lala ♪", "[LACHT]", "MANN: Kommen Sie herein und setzen Sie sich!"]
    assert assert_read_back(SRT, text.encode(), texts).decode() == cue(
        "\u266a Lala lalala\nlala ♪\n[LACHT]\nMANN: Kommen Sie herein und setzen\nSie sich!"
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bilingual_utterances_of_several_lines_read_back(newline: str) -> None:
    text = cue("[NOISE]\n- Come in and\nsit!\n- No.\n42:\n[END]").replace("\n", newline)
    options = Options("de", bilingual=True)
    found = SRT.extract(text.encode(), options)
    texts: list[str | None] = ["[KRACH]", "Komm und setz dich!", None, "[ENDE]"]
    output = SRT.splice(text.encode(), found, texts, options)
    assert differing(SRT, output, found, texts, options) == []
    expected = "[NOISE]\n[KRACH]\n- Come in and\nsit!\n- Komm und setz\ndich!\n- No.\n"
    assert expected.replace("\n", newline) in output.decode()


LINES = ["[A B]", "(c d)", "- e f", "g h", "MAN: i j", "\u266a k l ♪", "<i>m n</i>", "1", ""]


@given(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=7),
    st.lists(st.sampled_from([None, "x", "x y", "x y z [x] - y", "[x]", "- x"]), min_size=7),
    st.booleans(),
)
def test_any_mix_of_lines_reads_back_or_keeps_its_source(
    lines: list[str], texts: list[str | None], bilingual: bool
) -> None:
    options = Options("de", bilingual=bilingual)
    data = cue("\n".join(lines)).encode()
    found = SRT.extract(data, options)
    held = usable(texts[: len(found.segments)], found.segments)
    output = SRT.splice(data, found, held, options)
    kept = [
        None if index in set(differing(SRT, output, found, held, options)) else text
        for index, text in enumerate(held)
    ]
    assert_read_back(SRT, data, kept, options)


def test_the_pronunciation_of_ruby_is_no_text() -> None:
    ruby = cue("<ruby>\u6f22<rt>kan</rt>\u5b57<rt>ji</rt></ruby> is a word", vtt=True)
    assert texts_of(VTT, ruby) == ["<g1>\u6f22<x2/>\u5b57<x3/></g1> is a word"]

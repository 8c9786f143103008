"""Tests of SRT and WebVTT."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents import encodings
from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.read_back import SkeletonDiffers, differing
from dragoman_documents.subtitles.srt_vtt import CODECS, SubtitleCodec
from dragoman_documents.subtitles.text import VTT_TAG, core, cut, joined, width
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    translations,
)

SRT, VTT = CODECS["srt"], CODECS["vtt"]
SRT_HEAD = b"1\n00:00:01,000 --> 00:00:02,000\n"
FILM = """\
1
00:00:01,000 --> 00:00:02,500
I have never been to the city

2
00:00:02,600 --> 00:00:04,000
<i>where my father, who was old,</i>
<i>was born.</i>

3
00:00:05,000 --> 00:00:07,000
- Are you <b>ready</b>?
- Not yet.

4
00:00:08,000 --> 00:00:09,000
{\\an8}The end
"""
CAPTIONS = """\
WEBVTT Kind: captions

NOTE a note
of two lines

STYLE
::cue { color: red }

REGION
id:fred

intro
00:01.000 --> 00:02.000 align:start position:0%
<v Ann>Salt &amp; pepper are
on the table</v>

00:02.100 --> 00:04.000
<v Ann>and the <c.loud>bread</c> is there.</v>

00:05.000 --> 00:06.000
42
"""


def texts_of(codec: object, text: str) -> list[str]:
    assert isinstance(codec, SubtitleCodec)
    return [each.text for each in assert_identity(codec, text.encode()).segments]


def srt(*cues: tuple[str, str, str]) -> str:
    blocks = [
        f"{number}\n00:00:{start} --> 00:00:{end}\n{text}\n"
        for number, (start, end, text) in enumerate(cues, 1)
    ]
    return "\n".join(blocks)


def test_cues_of_a_sentence_are_one_segment() -> None:
    found = assert_identity(SRT, FILM.encode()).segments
    assert [(each.text, each.place) for each in found] == [
        ("I have never been to the city <g1>where my father, who was old,</g1> <g2>was born.</g2>",
         "cues 1-2"),
        ("Are you <g1>ready</g1>?", "cue 3"),
        ("Not yet.", "cue 3"),
        ("The end", "cue 4"),
    ]  # fmt: skip


def test_header_notes_styles_settings_and_voices_are_left_alone() -> None:
    found = assert_identity(VTT, CAPTIONS.encode()).segments
    assert [each.text for each in found] == [
        "Salt & pepper are on the table and the <g1>bread</g1> is there."
    ]
    text = "Salz & Pfeffer sind auf dem Tisch, und das <g1>Brot</g1> ist da."
    output = assert_read_back(VTT, CAPTIONS.encode(), [text]).decode()
    assert output == CAPTIONS.replace(
        "<v Ann>Salt &amp; pepper are\non the table</v>",
        "<v Ann>Salz &amp; Pfeffer sind auf dem Tisch,</v>",
    ).replace(
        "<v Ann>and the <c.loud>bread</c> is there.</v>",
        "<v Ann>und das <c.loud>Brot</c> ist da.</v>",
    )


def test_a_sentence_is_cut_at_the_clause_nearest_to_each_share() -> None:
    text = srt(
        ("01,000", "02,000", "When the rain had stopped"),
        ("02,100", "03,000", "we went out again."),
    )
    output = assert_read_back(
        SRT, text.encode(), ["Als der Regen aufgeh\u00f6rt hatte, gingen wir wieder hinaus."]
    ).decode()
    assert "\nAls der Regen aufgeh\u00f6rt hatte,\n\n2\n" in output
    assert output.endswith("\ngingen wir wieder hinaus.\n")


def test_a_translation_with_fewer_words_than_cues_is_not_used() -> None:
    text = srt(("01,000", "02,000", "that is to say"), ("02,100", "03,000", "it is over."))
    extraction = SRT.extract(text.encode(), GERMAN)
    output = SRT.splice(text.encode(), extraction, ["Ende."], GERMAN)
    assert differing(SRT, output, extraction, ["Ende."], GERMAN) == [0]
    assert output == text.encode()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("01,000", "02,000", "It is over."), ("02,100", "03,000", "So it seems.")),
        (("01,000", "02,000", "It is \u201cover.\u201d"), ("02,100", "03,000", "So it seems.")),
        (("01,000", "02,000", "and so it"), ("03,000", "04,000", "was again")),
        (("01,000", "02,000", "and so it"), ("01,500", "04,000", "was again")),
        (("01,000", "02,000", "and so it"), ("02,000", "04,000", "[door slams]")),
        (("01,000", "02,000", "\u266a la la"), ("02,000", "04,000", "\u266a di dum")),
        (("01,000", "02,000", "Hello"), ("02,000", "04,000", "there, you")),
        (("01,000", "02,000", "{\\an8}At the top"), ("02,000", "04,000", "at the bottom")),
    ],
)
def test_cues_that_are_no_sentence_together_stay_apart(
    first: tuple[str, str, str], second: tuple[str, str, str]
) -> None:
    assert len(texts_of(SRT, srt(first, second))) == 2


def test_captions_without_end_marks_are_joined_by_six() -> None:
    cues = [(f"{n:02},000", f"{n:02},900", "some more words") for n in range(13)]
    assert [text.count("some") for text in texts_of(SRT, srt(*cues))] == [6, 6, 1]


def test_scripts_without_blanks_are_joined_and_cut_without_blanks() -> None:
    text = srt(
        ("01,000", "02,000", "\u79c1\u306f\u6628\u65e5"),
        ("02,100", "03,000", "\u6771\u4eac\u3078\u884c\u3063\u305f\u3002"),
    )
    assert texts_of(SRT, text) == [
        "\u79c1\u306f\u6628\u65e5\u6771\u4eac\u3078\u884c\u3063\u305f\u3002"
    ]
    output = assert_read_back(
        SRT, text.encode(), ["\u6211\u6628\u5929\u53bb\u4e86\u4e1c\u4eac\u3002"]
    )
    assert len(output.decode().splitlines()) == len(text.splitlines())


def test_a_long_line_is_wrapped() -> None:
    text = srt(("01,000", "02,000", "Short."))
    output = assert_read_back(SRT, text.encode(), ["word " * 16 + "end."]).decode()
    lines = output.splitlines()[2:]
    assert len(lines) == 2
    assert max(map(len, lines)) <= 45


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_newlines_and_a_byte_order_mark_stay(newline: str, mark: str) -> None:
    for codec, text in ((SRT, FILM), (VTT, CAPTIONS)):
        data = (mark + text.replace("\n", newline)).encode()
        found = assert_identity(codec, data)
        plain = [f"x {each.text} " + "more words " * 9 + "x" for each in found.segments]
        output = assert_read_back(codec, data, plain).decode()
        assert output.count("\n") + output.count("\r") == output.count(newline) * len(newline)


def test_bilingual_cues_hold_source_and_translation() -> None:
    options = Options("de", bilingual=True)
    data = FILM.encode()
    extraction = SRT.extract(data, options)
    texts = [
        "Ich war nie in der Stadt, wo <g1>mein Vater</g1> geboren <g2>wurde</g2>.",
        "<g1>Fertig</g1>?", None, "Ende",
    ]  # fmt: skip
    output = SRT.splice(data, extraction, texts, options)
    assert "\n{\\an8}The end\nEnde\n" in output.decode()
    assert "- Are you <b>ready</b>?\n- <b>Fertig</b>?\n- Not yet.\n" in output.decode()
    assert differing(SRT, output, extraction, texts, options) == []


def test_an_output_is_read_in_the_recognised_encoding_of_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = srt(("01,000", "02,000", "Gr\u00fc\u00dfe.")).encode("cp1252")
    monkeypatch.setattr(encodings, "_recognised", lambda *_: "cp1252")
    extraction = SRT.extract(data, GERMAN)
    output = SRT.splice(data, extraction, ["L\u00f6wen."], GERMAN)
    monkeypatch.setattr(encodings, "_recognised", lambda *_: "cp437")
    assert differing(SRT, output, extraction, ["L\u00f6wen."], GERMAN) == []


def test_an_output_that_lost_a_cue_is_not_written() -> None:
    extraction = SRT.extract(FILM.encode(), GERMAN)
    lost = FILM.replace("00:00:08,000 --> 00:00:09,000\n", "").encode()
    with pytest.raises(SkeletonDiffers, match="number of cues"):
        differing(SRT, lost, extraction, [None] * 4, GERMAN)


def test_a_changed_time_is_not_written() -> None:
    extraction = SRT.extract(FILM.encode(), GERMAN)
    changed = FILM.replace("00:00:08,000", "00:00:08,001").encode()
    with pytest.raises(SkeletonDiffers, match="markup"):
        differing(SRT, changed, extraction, [None] * 4, GERMAN)


@pytest.mark.parametrize(
    "text",
    [
        "00:00:03,000 --> 00:00:04,000",
        "one two three four 00:00:03,000 --> 00:00:04,000",  # wrapped before the times
        "00:03\0--> 00:04",
        "42",
    ],
)
def test_a_translation_that_would_begin_a_cue_is_left_out(text: str) -> None:
    data = b"00:01 --> 00:02\nA text.\n00:05 --> 00:06\nThe end.\n"
    extraction = SRT.extract(data, GERMAN)
    output = SRT.splice(data, extraction, [text, "Ende."], GERMAN)
    assert output == data.replace(b"The end.", b"Ende.")
    assert differing(SRT, output, extraction, [text, "Ende."], GERMAN) == [0]


@pytest.mark.parametrize("codec", [SRT, VTT])
def test_a_nul_at_the_end_of_a_cue_does_not_change_its_markup(codec: SubtitleCodec) -> None:
    data = b"WEBVTT\n\n00:01 --> 00:02\nA text.\0\n"
    extraction = assert_identity(codec, data)
    texts: list[str | None] = [f"[de] {each.text}" for each in extraction.segments]
    output = codec.splice(data, extraction, texts, GERMAN)
    assert b"\n[de] A text.\n" in output
    differing(codec, output, extraction, texts, GERMAN)


def test_a_cue_with_a_nul_in_a_tag_keeps_its_source() -> None:
    data = b"WEBVTT\n\n00:01.000 --> 00:02.000\nA <c.a\0b>bold</c> text.\n"
    extraction = assert_identity(VTT, data)
    texts: list[str | None] = [f"[de] {each.text}" for each in extraction.segments]
    assert VTT.splice(data, extraction, texts, GERMAN) == data


@given(st.lists(translations, min_size=4, max_size=4))
def test_any_text_of_a_cue_reads_back_in_webvtt(texts: list[str]) -> None:
    cues = "".join(f"\n00:0{n}:01.000 --> 00:0{n}:02.000\nA text.\n" for n in range(4))
    assert_read_back(VTT, f"WEBVTT\n{cues}".encode(), texts)


@given(translations.filter(lambda text: "<" not in text and "{" not in text))
def test_any_text_without_markup_reads_back_in_srt(text: str) -> None:
    assert_read_back(SRT, srt(("01,000", "02,000", "A text.")).encode(), [text])


@given(
    st.text(st.sampled_from("ab ,.\u6f22\u3001\u306e\u0e01\u0e34"), min_size=1, max_size=60),
    st.integers(1, 5),
)
def test_what_is_cut_joins_again(text: str, count: int) -> None:
    text = f"a{text}a"
    parted = cut(text, [1] * count, "\n", nested=True)
    if parted is not None:
        assert parted.count("\n") == count - 1
        assert joined(parted) == text


def test_a_pair_of_tags_is_not_cut() -> None:
    assert cut("<g1>a b c</g1> d", [1, 3], "|", nested=False) == "<g1>a b c</g1>|d"


def test_the_end_of_a_clause_is_better_than_the_nearest_word() -> None:
    assert cut("aaaa bb, c dd eeee", [1, 1], "|", nested=True) == "aaaa bb,|c dd eeee"


def test_ideographs_are_two_wide_and_tags_nothing() -> None:
    assert width("<g1>ab</g1>\u6f22<x2/>") == 4


@pytest.mark.parametrize(
    ("codec", "data"), [(VTT, b""), (VTT, b"WEBVTTX\n"), (SRT, b"hello"), (SRT, b"1\n2\n")]
)
def test_other_files_are_refused(codec: SubtitleCodec, data: bytes) -> None:
    with pytest.raises(DocumentError) as caught:
        codec.extract(data, GERMAN)
    assert caught.value.reason == "wrong_type"


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "1\n00:00:01,000 --> 00:00:02,000", "1\n00:00:01,000 --> 00:00:02,000\n\n\n"],
)
def test_a_file_without_texts_has_no_segments(text: str) -> None:
    assert texts_of(SRT, text) == []


@pytest.mark.parametrize(
    "body",
    [
        "x",
        "x ",
        "<i>",
        "<i>a</i>",
        "\n\u6f22",
        "- a\n",
        "[a]\n",
        "{\\p1}",
        "m 1 1 ",
        "<rt>",
        "1:1:1,1 ",
        "1 -",
        "<",
        "{\\",
        "\u200b",
        "&amp;",
        "00:00:01.000 --> 00:00:02.000\n",
    ],
)
def test_a_huge_cue_takes_linear_time(body: str) -> None:
    for codec, head in ((SRT, "1\n"), (VTT, "WEBVTT\n\n")):
        data = f"{head}00:00:01.000 --> 00:00:02.000\n{body * (2**17 // len(body))}\n".encode()
        extraction = assert_identity(codec, data)
        texts = [f"[de] {each.text}" for each in extraction.segments]
        codec.splice(data, extraction, texts, GERMAN)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("body", ["m 1 1 ", "a" + " " * 600_000 + "b "])
def test_long_lines_of_a_cue_take_linear_time(body: str) -> None:
    """A search from each shape, or from each blank, takes many minutes."""
    data = f"1\n00:00:01,000 --> 00:00:02,000\n{body * (600_000 // len(body) or 1)}x\n".encode()
    segments = assert_identity(SRT, data).segments
    assert_read_back(SRT, data, [f"[de] {each.text}" for each in segments])


@pytest.mark.timeout(120)
def test_tags_around_a_text_are_left_out_in_linear_time() -> None:
    """A slice per tag takes many minutes."""
    tags = 500_000
    raw = "<i>" * tags + "x" + "</b>" * tags
    assert core(raw, VTT_TAG) == (3 * tags, 3 * tags + 1)


@pytest.mark.timeout(120)
def test_a_long_run_of_blanks_is_kept_in_linear_time() -> None:
    """A search from each blank takes many minutes."""
    gap = " " * 400_000
    output = assert_read_back(SRT, SRT_HEAD + b"a\n", [f"a{gap}b{gap}\r c"])
    assert output == SRT_HEAD + f"a{gap}b c\n".encode()


@pytest.mark.timeout(120)
def test_closing_marks_without_an_end_do_not_end_a_sentence_and_take_linear_time() -> None:
    """A search from each mark takes many minutes."""
    first = "One two " + ")" * 600_000 + "x"
    data = SRT_HEAD + first.encode() + b"\n\n2\n00:00:02,100 --> 00:00:03,000\nthree four.\n"
    assert texts_of(SRT, data.decode()) == [f"{first} three four."]


def test_a_reference_of_many_digits_is_no_character() -> None:
    text = f"WEBVTT\n\n00:01.000 --> 00:02.000\na &#{'9' * 5000};\n"
    assert texts_of(VTT, text) == ["a \ufffd"]


def test_a_cue_of_webvtt_keeps_the_spelling_of_its_references() -> None:
    cue = "a&nbsp;b &lrm;c &am &lr; R&D > x\n"
    data = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{cue}".encode()
    found = VTT.extract(data, GERMAN)
    text = found.segments[0].text
    assert VTT.splice(data, found, [text], GERMAN) == data
    changed = data.replace(b"R&D", b"X&D")
    assert VTT.splice(data, found, [text.replace("R&D", "X&D")], GERMAN) == changed


TIMES = "00:00:0{0}.000 --> 00:00:0{0}.900\n"


@pytest.mark.parametrize("codec", CODECS.values())
@given(
    st.lists(
        st.lists(
            st.sampled_from([
                "a", "bb cc", " ", "  ", "\n", " \n\t", ",", ".", "- ", "<i>", "</i>", "<b>x</b>",
                "水", "水「火", "\u00a0", "&nbsp;", "&amp;", "&", "<", "x" * 45, "{\\an8}", "<x1/>",
                "\u266a", "\n[a b]\n", "\nMAN: a", "{\\p1}m 0 0 l 1 1", "{\\p0}", "\nm 1 2 l 3 4",
                "<ruby>a<rt>b</rt>", "</ruby>", "-->", " 00:00:01 -> 00:00:02",
                "\\N", "\\h",
            ]).map(str),
            min_size=1,
        ).map("".join),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
)  # fmt: skip
def test_subtitles_that_are_their_own_translation_stay_as_they_are(
    codec: SubtitleCodec, cues: list[str], newline: str
) -> None:
    blocks = [TIMES.format(index) + cue for index, cue in enumerate(cues)]
    text = "\n\n".join(["WEBVTT", *blocks, ""]) if codec.vtt else "\n\n".join([*blocks, ""])
    assert_itself_again(codec, text.replace("\n", newline).encode())


@pytest.mark.parametrize(
    ("source", "text", "answer", "wanted"),
    [
        (r"Text\Nwith a break", "Text<x1/>with a break", "Mit<x1/>Umbruch", r"Mit\NUmbruch"),
        (r"\h\hHello\N\hyou\N", "Hello<x1/>you", "Hallo<x1/>du", r"\h\hHallo\N\hdu\N"),
        (r"- Who?\n- Me!", "- Who?<x1/>- Me!", "- Wer?<x1/>- Ich!", r"- Wer?\n- Ich!"),
    ],
)
def test_breaks_and_hard_blanks_of_ass_in_srt_are_codes(
    source: str, text: str, answer: str, wanted: str
) -> None:
    data = SRT_HEAD + source.encode()
    assert texts_of(SRT, data.decode()) == [text]
    assert assert_read_back(SRT, data, [answer]) == SRT_HEAD + wanted.encode()


def test_a_break_at_the_end_of_a_shorter_text_is_left_out() -> None:
    cue = TIMES.format(1) + "So we\nwent\n"
    assert assert_read_back(SRT, cue.encode(), ["So we"]).decode() == TIMES.format(1) + "So we\n"


def test_the_breaks_of_a_sentence_stay_where_the_text_did_not_change() -> None:
    film = (
        TIMES.format(1) + "So we wanted, in\nthose days, a simple way\n\n" + TIMES.format(2)
        + "for creators to say\nso to the world, and often to all the others.\n"
    )  # fmt: skip
    (segment,) = SRT.extract(film.encode(), GERMAN).segments
    text = segment.text.replace("simple", "very simple")
    output = assert_read_back(SRT, film.encode(), [text]).decode()
    assert output == film.replace("simple", "very simple")

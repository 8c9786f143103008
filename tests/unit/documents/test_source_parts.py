"""Tests of large files, which are read and written in parts."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dragoman_documents.codec import Options
from dragoman_documents.parts import cutting
from dragoman_documents.parts import source as source_parts
from dragoman_documents.registry import codec
from dragoman_documents.tables.scanning import delimiter_of, rows
from dragoman_producer.runs import child, progress
from dragoman_producer.runs.child_wire import Text, options_fields
from dragoman_producer.runs.progress import Saying

ROWS = 40
CUES = "".join(
    f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\nThis is line {number}.\n\n"
    for number in range(1, ROWS)
)
RECORDS = "".join(f'{n},"A title, number {n}","Body\nwith ""line"" {n}"\n' for n in range(ROWS))
DOCUMENTS = {
    "txt": "\n\n".join(f"This is paragraph {n}\nof the many." for n in range(ROWS)),
    "srt": CUES,
    "vtt": "WEBVTT\n\nNOTE of the header\n\n" + CUES.replace(",", "."),
    "jsonl": "".join(f'{{"id":{n},"text":"Sentence number {n}."}}\n' for n in range(ROWS)),
    "csv": "id,title,body\n" + RECORDS,
    "tsv": "id\ttitle\tbody\n" + RECORDS.replace(',"', '\t"'),
}
ENCODINGS = [(b"", "utf-8"), (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16-be")]


@pytest.fixture
def part_bytes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def limit(size: int, units: int = 50_000) -> None:
        monkeypatch.setattr(source_parts, "PART_BYTES", size)
        monkeypatch.setattr(source_parts, "PART_UNITS", units)
        monkeypatch.setattr(source_parts, "LARGEST_PART", 50 * size)

    return limit


class Done:
    """A file read, and written with a translation of each text."""

    def __init__(
        self,
        folder: Path,
        format_name: str,
        data: bytes,
        translate: Callable[[str], str | None],
        options: Options = Options("de", "en"),  # noqa: B008  frozen
    ) -> None:
        self.said: list[dict[str, Any]] = []
        path, output = folder / "source", folder / "output"
        path.write_bytes(data)
        request = {
            "path": str(path), "format": format_name, "seconds": 100,
            "options": options_fields(options),
        }  # fmt: skip
        *frames, self.known = self._answers({**request, "do": "read"}, iter(()))
        self.rows = [row for frame in frames for row in frame["rows"]]
        self.refused: str | None = self.known.get("reason")
        if self.refused:
            return
        texts: list[Text] = [row[0] and translate(row[0]) for row in self.rows]
        asked = {
            **request, "do": "write", "sha256": self.known["sha256"], "temporary": str(output),
        }  # fmt: skip
        [self.answer] = self._answers(asked, iter(texts))
        self.refused = self.answer.get("reason")
        self.output = output.read_bytes() if output.exists() else None
        output.unlink(missing_ok=True)

    def _answers(self, request: dict[str, Any], texts: Iterator[Text]) -> list[Any]:
        saying = Saying(self.said.append, "written" if request["do"] == "write" else "read")
        return list(child._answers(request, texts, saying))


def parts_of(folder: Path, format_name: str) -> int:
    options = Options("de", "en")
    source = source_parts.SourceFile(folder / "source", codec(format_name), options)
    return len(list(source.parts()))


def translated(text: str) -> str:
    return f"x {text}"


@pytest.mark.parametrize(("mark", "encoding"), ENCODINGS)
@pytest.mark.parametrize("format_name", sorted(DOCUMENTS))
@pytest.mark.parametrize("limits", [(400, 50_000), (100_000, 7)])
def test_a_file_in_parts_has_the_segments_and_the_output_of_the_whole_file(
    part_bytes: Callable[..., None],
    tmp_path: Path,
    format_name: str,
    mark: bytes,
    encoding: str,
    limits: tuple[int, int],
) -> None:
    data = mark + DOCUMENTS[format_name].encode(encoding)
    whole = Done(tmp_path, format_name, data, translated)
    part_bytes(*limits)
    assert parts_of(tmp_path, format_name) > 2
    done = Done(tmp_path, format_name, data, translated)
    assert done.rows == whole.rows
    assert done.known == whole.known
    assert done.answer == whole.answer
    assert done.output == whole.output


@pytest.mark.parametrize(
    ("format_name", "passes"),
    [
        ("txt", ["scanned", "read", "scanned", "written"]),
        ("csv", ["scanned", "scanned", "read", "scanned", "scanned", "written"]),
    ],
)
def test_a_file_in_parts_says_how_far_it_is(
    part_bytes: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    format_name: str,
    passes: list[str],
) -> None:
    monkeypatch.setattr(progress, "_SAY_S", 0)
    monkeypatch.setattr(source_parts, "READ_BYTES", 100)
    part_bytes(400)
    data = DOCUMENTS[format_name].encode()
    said = [each["progress"] for each in Done(tmp_path, format_name, data, translated).said]
    counts = [*range(100, len(data), 100), len(data)]
    assert said == [[done, count, len(data)] for done in passes for count in counts]


def test_all_parts_of_an_output_have_one_encoding(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    data, options = DOCUMENTS["txt"].encode(), Options("pl", "en", encoding="cp1252")

    def polish(text: str) -> str:
        return f"Ł {text}" if text.endswith(" 7") else f"ó {text}"

    part_bytes(400)
    done = Done(tmp_path, "txt", data, polish, options)
    assert done.output is not None
    assert done.output.decode().count("ó ") == 2 * ROWS - 1


@pytest.mark.parametrize("format_name", ["txt", "srt", "vtt", "jsonl"])
@given(
    parts=st.lists(
        st.sampled_from(
            [
                "Text",
                "\n",
                "\r",
                "\r\n",
                " ",
                '"',
                ",",
                "\t",
                "\ufeff",
                "é",
                "\0",
                "-->",
                "1\n",
                '{"a":"B c"}',
            ]
        ),
        max_size=60,
    ),
    size=st.integers(8, 60),
)
def test_any_file_in_parts_is_written_byte_for_byte_or_refused(
    format_name: str, parts: list[str], size: int
) -> None:
    data = (DOCUMENTS[format_name][:100] + "".join(parts)).encode()
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_parts, "PART_BYTES", size)
        done = Done(Path(folder), format_name, data, lambda _: None)
    assert done.refused or done.output == data
    assert done.refused in {None, "corrupt", "wrong_type"}


@given(
    cells=st.lists(
        st.sampled_from(["a b", '"', '""', ",", "\n", "\r\n", '"c\nd"', "x"]), max_size=40
    ),
    cut=st.integers(0, 60),
)
@example(cells=['""', "\n", '""'], cut=4)  # the second row is empty, which a cut does not know
def test_a_table_is_cut_where_the_whole_table_has_a_row(cells: list[str], cut: int) -> None:
    text = "".join(cells)
    place = cutting.boundary(text[:cut], "csv")
    assume({delimiter_of(text[:cut], ","), delimiter_of(text, ",")} == {","})
    before, behind, whole = (
        [row.values for row in rows(part, ",")] for part in (text[:place], text[place:], text)
    )
    assert before + behind == whole


TABLES = [
    "id,title,body\n" + "".join(f"{n},A title of {n},\n" for n in range(ROWS)) + "99,A b,A body.\n",
    "A hat,red.\n" * ROWS + "A shoe,blue,It is new.\n" + "A hat\n" * ROWS,
    "sep=;\r\n\r\nn;name\r\n\r\n" + "".join(f"{n};A hat\r\n" for n in range(ROWS)),
    "keys,en,de\n" + "".join(f"K_{n},Hat {n},\n" for n in range(ROWS)) + "K,A hat,Ein Hut\n",
    '"The\nname",n\n' + "".join(f'"A ""hat""\n{n}",{n}\n' for n in range(ROWS)),
    "\n\nname,n\n" + "A hat,1\n" * ROWS + "1\n" * ROWS,
    "keys,fr,de\n" + "start,,\n" * ROWS + "Start game,,\n" + "end,,\n" * ROWS,
    "key,en,de\n" + "".join(f"k,Hat {n},\n" for n in range(ROWS)) + "k,A hat,17\n",
    "\n".join(str(n) for n in range(ROWS * 4)) + "\nA word,and another",
]  # fmt: skip


@pytest.mark.parametrize("limits", [(100, 50_000), (100_000, 9), (100_000, 2)])
@pytest.mark.parametrize("text", TABLES)
def test_the_columns_of_a_table_in_parts_are_those_of_the_whole_table(
    part_bytes: Callable[..., None], tmp_path: Path, text: str, limits: tuple[int, int]
) -> None:
    whole = Done(tmp_path, "csv", text.encode(), translated)
    part_bytes(*limits)
    done = Done(tmp_path, "csv", text.encode(), translated)
    assert parts_of(tmp_path, "csv") > 2
    assert done.refused is None
    assert (done.rows, done.output) == (whole.rows, whole.output)


def test_translations_that_a_table_in_parts_holds_stay_if_there_are_no_others(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    part_bytes(100)
    data = ("keys,en,de\n" + "".join(f"K_{n},Hat {n},\n" for n in range(ROWS))).encode()
    done = Done(tmp_path, "csv", data, lambda _: None)
    assert done.output == data


def test_a_table_has_its_new_columns_in_all_parts_if_one_has_no_translation(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    part_bytes(400)
    data = DOCUMENTS["csv"].encode()
    done = Done(tmp_path, "csv", data, lambda text: "x" if text.endswith("39") else None)
    assert done.output is not None
    widths = {len(row.cells) for row in rows(done.output.decode(), ",")}
    assert widths == {5}


def test_numbers_of_segments_that_do_not_read_back_are_those_of_the_file(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    def odd(text: str) -> str:
        return "-" if text.endswith(" 33") else translated(text)

    part_bytes(400)
    done = Done(tmp_path, "txt", DOCUMENTS["txt"].replace("\nof the many.", "").encode(), odd)
    assert done.answer["changed"] == [33]
    assert done.rows[33][1] == "line 67"


def test_a_large_file_that_is_not_utf8_is_read_at_once(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    part_bytes(100)
    data = (DOCUMENTS["txt"] + "\n\nGrüße an Jürgen und die Mädchen.").encode("latin-1")
    done = Done(tmp_path, "txt", data, lambda _: None)
    assert done.output == data


def test_a_file_that_changes_while_it_is_written_is_refused(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    part_bytes(400)

    def change(text: str) -> str:
        with (tmp_path / "source").open("ab") as file:
            file.write(b"\n\nMore.")
        return text

    done = Done(tmp_path, "txt", DOCUMENTS["txt"].encode(), change)
    assert (done.refused, done.output) == ("changed", None)


def test_a_file_without_a_place_to_cut_it_is_too_large(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    part_bytes(10)
    rows = b'{"a": "One."}\n' * 3
    done = Done(tmp_path, "jsonl", rows + b'{"a": "' + b"x" * 2_000 + b'"}', translated)
    assert done.refused == "too_large"
    assert done.known["detail"].startswith("from line 4 on, 500 characters are one value; ")


def test_the_digest_of_an_output_is_that_of_its_bytes(
    part_bytes: Callable[..., None], tmp_path: Path
) -> None:
    part_bytes(400)
    done = Done(tmp_path, "csv", DOCUMENTS["csv"].encode(), translated)
    assert done.output is not None
    assert done.answer["sha256"] == hashlib.sha256(done.output).hexdigest()

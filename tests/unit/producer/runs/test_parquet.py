"""Parquet by runs: translations in new columns, everything else equal by pyarrow's judgement."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from dragoman_documents.codec import MOST_CHARACTERS, DocumentError, Options
from dragoman_documents.tables.parquet.table import ParquetTable
from dragoman_producer.runs.events import DocumentEnded, Finished
from dragoman_producer.runs.request import Reading, RunRequest
from dragoman_producer.runs.translating import run_documents
from dragoman_producer.testing import InMemoryClient, ItemFailed, tagged
from dragoman_schemas.jobs import Item, TranslationJob

SCHEMA = pa.schema(
    [
        pa.field("sku", pa.int64(), nullable=False),
        pa.field("description", pa.string(), metadata={"owner": "shop"}),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
        pa.field("prices", pa.list_(pa.float64())),
        pa.field("made", pa.timestamp("ns", "UTC")),
        pa.field("nothing", pa.null()),
        pa.field("info", pa.struct([("title", pa.string()), ("pages", pa.int32())])),
    ],
    metadata={"pandas": "{}", "origin": "a test"},
)
ROWS: list[dict[str, Any]] = [
    {"sku": 1, "description": "A red shirt.", "kind": "shirt", "prices": [1.5, None], "made": 1,
     "info": {"title": "Shirts", "pages": 3}},
    {"sku": 2, "description": None, "kind": None, "prices": None, "made": None, "info": None},
    {"sku": 3, "description": " 12 ", "kind": "hat", "prices": [], "made": 3,
     "info": {"title": None, "pages": None}},
    {"sku": 4, "description": " A hat. \n", "kind": "hat", "prices": [2.0], "made": 4,
     "info": {"title": "Hats", "pages": 1}},
]  # fmt: skip


def table() -> pa.Table:
    return pa.Table.from_pylist([{"nothing": None, **row} for row in ROWS], SCHEMA)


async def run(
    folder: Path, *columns: str, to: tuple[str, ...] = ("de",), **more: Any
) -> tuple[int, dict[str, Any], list[DocumentEnded]]:
    """Translate `folder/in`; return exit status, report and documents."""
    reading = Reading(columns=columns, **more)
    request = RunRequest((folder / "in",), to, folder / "out", reading=reading)
    events = [each async for each in run_documents(InMemoryClient(), request)]
    last = events[-1]
    assert isinstance(last, Finished)
    report = json.loads((folder / "out" / "report.json").read_bytes())
    return last.exit_status, report, [each for each in events if isinstance(each, DocumentEnded)]


def given(folder: Path, made: pa.Table, **how: Any) -> Path:
    path = folder / "in" / "rows.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(made, path, **how)
    return path


def output(folder: Path, lang: str = "de") -> pa.Table:
    return pq.read_table(folder / "out" / lang / "rows.parquet")


async def test_new_columns_hold_translations_and_all_others_are_equal(tmp_path: Path) -> None:
    path = given(
        tmp_path, table(), row_group_size=3, compression={"description": "zstd", "sku": "gzip"}
    )
    source = pq.read_table(path)
    status, _, _ = await run(tmp_path, "description", "info.title")
    made = output(tmp_path)
    assert status == 0
    assert made.select(source.schema.names).equals(source, check_metadata=True)
    assert made.schema.metadata == source.schema.metadata
    assert made["description.de"].to_pylist() == [
        "[de] A red shirt.", None, " 12 ", " [de] A hat. \n",
    ]  # fmt: skip
    assert made["info.title.de"].to_pylist() == ["[de] Shirts", None, None, "[de] Hats"]


async def test_lists_of_texts_are_translated_member_by_member(tmp_path: Path) -> None:
    source = pa.table({"points": [["Warm.", None, "Soft."], None, []]})
    given(tmp_path, source)
    status, _, _ = await run(tmp_path, "points")
    assert status == 0
    assert output(tmp_path)["points.de"].to_pylist() == [
        ["[de] Warm.", None, "[de] Soft."],
        None,
        [],
    ]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
async def test_every_type_of_text_is_translated_in_place_too(
    tmp_path: Path, kind: pa.DataType
) -> None:
    given(tmp_path, pa.table({"t": pa.array(["One.", None, "Two."]).cast(kind)}))
    status, _, _ = await run(tmp_path, "t", in_place=True)
    made = output(tmp_path)
    assert (status, made["t"].to_pylist()) == (0, ["[de] One.", None, "[de] Two."])
    assert made.schema.field("t").type == kind


async def test_a_column_for_translations_that_is_there_is_filled_only_where_it_is_empty(
    tmp_path: Path,
) -> None:
    given(tmp_path, pa.table({"t": ["One.", "Two.", "No."], "t.de": ["Eins.", None, ""]}))
    status, _, _ = await run(tmp_path, "t", to=("de", "fr"))
    assert status == 0
    assert output(tmp_path)["t.de"].to_pylist() == ["Eins.", "[de] Two.", "[de] No."]
    assert output(tmp_path, "fr")["t.fr"].to_pylist() == ["[fr] One.", "[fr] Two.", "[fr] No."]
    assert output(tmp_path, "fr")["t.de"].to_pylist() == ["Eins.", None, ""]


async def test_a_file_without_rows_gets_the_new_column(tmp_path: Path) -> None:
    given(tmp_path, table().slice(0, 0))
    status, _, _ = await run(tmp_path, "description")
    made = output(tmp_path)
    assert (status, made.num_rows, made.schema.names[-1]) == (0, 0, "description.de")


async def test_a_partitioned_folder_is_a_folder_of_files(tmp_path: Path) -> None:
    source = pa.table({"land": ["at", "at", "ch"], "t": ["One.", "Two.", "Three."]})
    pq.write_to_dataset(source, tmp_path / "in", partition_cols=["land"])
    status, _, _ = await run(tmp_path, "t")
    made = pq.read_table(tmp_path / "out" / "de")
    assert status == 0
    assert sorted(made["t.de"].to_pylist()) == ["[de] One.", "[de] Three.", "[de] Two."]
    assert set(made["land"].to_pylist()) == {"at", "ch"}


async def test_bytes_that_are_no_text_stay_and_duplicate_names_are_taken_by_number(
    tmp_path: Path,
) -> None:
    raw = pa.array([b"\xff\xfe", b"One."], pa.binary()).view(pa.string())
    given(tmp_path, pa.Table.from_arrays([raw, pa.array(["a", "b"])], names=["t", "t"]))
    status, report, _ = await run(tmp_path, "t")
    assert status == 1
    assert "2 of its columns are named t" in report["documents"][0]["detail"]
    status, _, _ = await run(tmp_path, "1")
    assert status == 0
    found = pq.ParquetFile(tmp_path / "out/de/rows.parquet").read().column(2).cast(pa.binary())
    assert found.to_pylist() == [b"\xff\xfe", b"[de] One."]


@pytest.mark.parametrize(
    ("made", "columns", "reason", "detail"),
    [
        (b"PAR1 what is this PARE", ("t",), "encrypted", "decrypt it first"),
        (b"PAR1garbagePAR1", ("t",), "corrupt", "it is damaged, or no Parquet file"),
        (b"", ("t",), "corrupt", "it is damaged, or no Parquet file"),
        (pa.table({"t": [1]}), ("t",), "wrong_type", "column t holds int64, not text"),
        (pa.table({"t": [b"x"]}), ("t",), "wrong_type", "column t holds binary, not text"),
        (pa.table({"t": ["x"]}), (), "wrong_type", "name the columns to translate with --column"),
        (pa.table({"t": ["x"], "t.de": [1]}), ("t",), "wrong_type", "t.de holds no texts"),
    ],
)
async def test_what_cannot_be_translated_is_refused_in_one_sentence(
    tmp_path: Path, made: pa.Table | bytes, columns: tuple[str, ...], reason: str, detail: str
) -> None:
    path = given(tmp_path, table())
    if isinstance(made, bytes):
        path.write_bytes(made)
    else:
        pq.write_table(made, path)
    status, report, _ = await run(tmp_path, *columns)
    [found] = report["documents"]
    assert (status, found["reason"]) == (1, reason)
    assert detail in found["detail"]


async def test_columns_that_are_nested_too_deeply_are_named_as_such(tmp_path: Path) -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(150):
        kind = pa.struct([("a", kind)])
    given(tmp_path, pa.table({"t": ["One."], "n": pa.array([None], kind)}))
    status, report, _ = await run(tmp_path, "t")
    [found] = report["documents"]
    assert (status, found["reason"]) == (1, "bomb")
    assert found["detail"] == "a column is nested too deeply; flatten it"


async def test_the_id_of_a_row_is_in_its_place_in_the_report(tmp_path: Path) -> None:
    given(tmp_path, pa.table({"sku": ["S-1", "S-2"], "t": ["One.", "<g1>Two"]}))
    reading = Reading(columns=("t",), ids=("sku",))
    request = RunRequest((tmp_path / "in",), ("de",), tmp_path / "out", reading=reading)

    def failing(item: Item, job: TranslationJob) -> str:
        if "Two" in item.text:
            raise ItemFailed
        return tagged(item, job)

    async for _ in run_documents(InMemoryClient(failing), request):
        pass
    [found] = json.loads((tmp_path / "out" / "report.json").read_bytes())["documents"]
    assert [each["place"] for each in found["issues"]] == ["row 2 (S-2), t"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
async def test_a_text_that_is_too_long_is_left_and_told(tmp_path: Path, suffix: str) -> None:
    long = "One two. " * 200_000
    if suffix == "parquet":
        given(tmp_path, pa.table({"t": [long, "Two."]}))
    else:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "rows.csv").write_text(f"t\n{long}\nTwo.\n", "utf-8")
    status, report, _ = await run(tmp_path, "t")
    [found] = report["documents"]
    assert (status, [each["kind"] for each in found["issues"]]) == (0, ["length"])
    if suffix == "parquet":
        assert output(tmp_path)["t.de"].to_pylist() == [long, "[de] Two."]
    else:
        assert (tmp_path / "out/de/rows.csv").read_text().endswith("\nTwo.,[de] Two.\n")


async def test_columns_are_named_to_the_letter(tmp_path: Path) -> None:
    names = ["t u", "t\n u", "T U"]
    given(tmp_path, pa.Table.from_arrays([pa.array([f"Text {n!r}."]) for n in names], names=names))
    status, _, _ = await run(tmp_path, "t\n u")
    assert status == 0
    made = output(tmp_path)
    assert made.schema.names == [*names, "t\n u.de"]
    assert made[3].to_pylist() == [f"[de] Text {names[1]!r}."]


async def test_bytes_that_are_no_text_are_told_in_the_report(tmp_path: Path) -> None:
    raw = pa.array([b"One.", b"\xff\xfe", b"\xfe"], pa.binary()).view(pa.string())
    given(tmp_path, pa.table({"t": raw}))
    status, report, _ = await run(tmp_path, "t")
    [found] = report["documents"][0]["issues"]
    assert (status, found["kind"], found["place"], found["count"]) == (
        0,
        "characters",
        "row 2, t",
        2,
    )
    assert "no UTF-8" in found["detail"]


async def test_a_file_of_a_folder_without_a_value_has_no_type_and_is_no_failure(
    tmp_path: Path,
) -> None:
    given(tmp_path, pa.table({"t": ["One."]}))
    pq.write_table(pa.table({"t": pa.nulls(2), "k": [1, 2]}), tmp_path / "in" / "nulls.parquet")
    status, _, _ = await run(tmp_path, "t")
    made = pq.read_table(tmp_path / "out" / "de" / "nulls.parquet")
    assert (status, made["t.de"].to_pylist(), made["k"].to_pylist()) == (0, [None, None], [1, 2])


def encrypted(path: Path, *, plaintext_footer: bool) -> None:
    properties = encryption.CryptoFactory(lambda _: Kms()).file_encryption_properties(
        encryption.KmsConnectionConfig(),
        encryption.EncryptionConfiguration(
            footer_key="a", column_keys={"b": ["u"]}, plaintext_footer=plaintext_footer
        ),
    )
    source = pa.table({"t": ["One."], "u": ["Two."]})
    with pq.ParquetWriter(path, source.schema, encryption_properties=properties) as writer:
        writer.write_table(source)


class Kms(encryption.KmsClient):  # type: ignore[misc]
    """Wraps keys by leaving them as they are."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plaintext_footer", [False, True])
async def test_a_file_with_encrypted_columns_is_refused_whatever_its_footer_is(
    tmp_path: Path, plaintext_footer: bool
) -> None:
    encrypted(given(tmp_path, table()), plaintext_footer=plaintext_footer)
    status, report, _ = await run(tmp_path, "t")
    [found] = report["documents"]
    assert (status, found["reason"]) == (1, "encrypted")
    assert found["detail"] == "it is encrypted; decrypt it first"


def test_rows_that_are_too_large_for_the_memory_are_named(tmp_path: Path) -> None:
    path = given(tmp_path, pa.table({"t": ["One.", "Two.", "Three."]}), row_group_size=1)
    asked = []

    def texts(count: int) -> list[str | None]:
        asked.append(count)
        if len(asked) == 2:
            raise MemoryError
        return [None] * count

    made = ParquetTable(path, Options("de", columns=("t",)))
    with pytest.raises(DocumentError, match=r"^row 2: .*; shorten the longest cells$") as caught:
        list(made.write(tmp_path / "made.parquet", texts))
    assert caught.value.reason == "too_large"


def test_of_a_giant_cell_only_so_much_is_decoded_that_it_is_too_long(tmp_path: Path) -> None:
    path = given(tmp_path, pa.table({"t": ["x y. " * 2_000_000]}))
    [[segment]] = ParquetTable(path, Options("de", columns=("t",))).segments()
    assert MOST_CHARACTERS < len(segment.text) < 5 * MOST_CHARACTERS


def test_a_column_for_a_language_is_named_without_the_table_of_all_names() -> None:
    code = (
        "import sys; from dragoman_documents.tables.languages import named_like;"
        " assert named_like('title_fr', 'de') == 'title_de';"
        " assert 'language_data.name_data' not in sys.modules"
    )
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **path})


async def test_ten_thousand_columns_keep_their_values(tmp_path: Path) -> None:
    source = pa.table({"t": ["One."], **{f"c{number}": [number] for number in range(10_000)}})
    given(tmp_path, source)
    status, _, _ = await run(tmp_path, "t")
    made = output(tmp_path)
    assert status == 0
    assert made.select(source.schema.names).equals(source)


def test_the_parent_never_imports_pyarrow() -> None:
    code = (
        "import sys, dragoman_producer.cli.translate, dragoman_producer.runs.translating,"
        " dragoman_producer.runs.options; assert 'pyarrow' not in sys.modules"
    )
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **path})

"""Tests of the echo engine's table of answers: its format, its errors and its limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.engines import echo_table
from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.engines.echo_table import EchoTable, _plain, load_table
from dragoman_worker.ports import Decoding, GenerationRequest
from dragoman_worker.settings import EchoSettings, EngineSettings, WorkerSettings


def table(tmp_path: Path, content: str | bytes) -> Path:
    file = tmp_path / "answers.tsv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def loaded(tmp_path: Path, content: str | bytes) -> EchoTable:
    return load_table(table(tmp_path, content))


async def answers(file: Path, source: str, lang: str = "de", *, attempts: int = 1) -> list[str]:
    """Return what the started engine answers to a source, attempt by attempt."""
    settings = EchoSettings(mode="table", table=file, faults=True)
    engine = EchoEngine(EngineSettings(kind="echo", echo=settings))
    await engine.start()
    return [
        (
            await engine.generate(
                GenerationRequest(
                    request_id="r",
                    prompt_ids=range(4),
                    decoding=Decoding(max_tokens=64),
                    source=source,
                    target_lang=lang,
                    attempt=attempt,
                )
            )
        ).text
        for attempt in range(1, attempts + 1)
    ]


async def test_each_attempt_has_its_own_answer_and_the_last_one_repeats(tmp_path: Path) -> None:
    file = table(tmp_path, "Hello.\tde\tHello.\tHalo.\tHallo.\n")
    assert await answers(file, "Hello.", attempts=4) == ["Hello.", "Halo.", "Hallo.", "Hallo."]


async def test_a_text_or_language_that_is_not_listed_is_tagged(tmp_path: Path) -> None:
    file = table(tmp_path, "Hello.\tde\tHallo.\n")
    assert await answers(file, "Bye.") == ["[de] Bye."]
    assert await answers(file, "Hello.", "fr") == ["[fr] Hello."]


async def test_an_answer_may_be_empty(tmp_path: Path) -> None:
    assert await answers(table(tmp_path, "Hello.\tde\t\tHallo."), "Hello.", attempts=2) == [
        "",
        "Hallo.",
    ]


async def test_a_fault_line_comes_before_the_table(tmp_path: Path) -> None:
    file = table(tmp_path, "Hello.\tde\tHallo.\n")
    assert await answers(file, "#!copy\nHello.") == ["Hello."]
    assert await answers(file, "#!sleep 0\nHello.") == ["Hallo."]


async def test_another_table_is_another_engine_for_the_memory(tmp_path: Path) -> None:
    identities = set()
    for content in ("a\tde\tb\n", "a\tde\tc\n"):
        settings = EchoSettings(mode="table", table=table(tmp_path, content))
        engine = EchoEngine(EngineSettings(kind="echo", echo=settings))
        await engine.start()
        identities.add(engine.identity)
    assert len(identities) == 2


def test_escapes_stand_for_tab_newline_and_backslash(tmp_path: Path) -> None:
    found = loaded(tmp_path, r"a\tb\\n" + "\tde\t" + r"x\ny\r\n\\" + "\n")
    assert found.answer("a\tb\\n", "de", 1) == "x\ny\r\n\\"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_can_be_written(text: str) -> None:
    written = text.replace("\\", "\\\\").replace("\t", r"\t").replace("\n", r"\n")
    assert _plain(written.replace("\r", r"\r"), 1) == text


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_line_ends_and_a_byte_order_mark_are_no_text(tmp_path: Path, end: str) -> None:
    found = loaded(tmp_path, f"\ufeff a \tDE_de\tb{end}{end}")
    assert found.answer("a", "de-DE", 1) == "b"
    assert len(found) == 1


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("Hello.\tHallo.\n", "line 1: give source"),
        ("a\tde\tb\n\nHello.\n", "line 3: give source"),
        ("Hello.\tgerman\tHallo.\n", "line 1: column 2: 'german'"),
        ("\tde\tHallo.\n", "line 1: column 1"),
        ("a\tde\tb\na\tde\tc\n", "line 2: line 1 has the same"),
        ("a\tde\tb\\x\n", "line 1: column 3"),
        ("a\tde\tb\\\n", "line 1: column 3"),
        (b"a\tde\tb\nh\xe4\tde\tb\n", "line 2: byte 2 is not UTF-8"),
        ("a\tde\tb\n".encode("utf-16"), "line 1: byte 1 is not UTF-8"),
        ("a\tde\t" + "x" * echo_table.LONGEST_LINE, "line 1 has more than"),
        ("", "no line lists a source"),
        ("\ufeff\n\r\n\r\r", "no line lists a source"),
        ("a\tde\tb\rc\tde\td\r", "line 1: a carriage return inside the line"),
        ("a\tde\tb\r" * 1_000_000, "line 1: a carriage return inside the line"),
    ],
)
def test_an_error_names_setting_file_and_line(
    tmp_path: Path, content: str | bytes, named: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, content)
    assert str(caught.value).startswith(f"engine.echo.table: {tmp_path / 'answers.tsv'}: {named}")
    assert len(str(caught.value)) < 400


def test_a_table_beyond_the_limit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(echo_table, "MOST_BYTES", 20)
    with pytest.raises(SettingsError, match="line 3 is beyond 20 bytes"):
        loaded(tmp_path, "a\tde\tbbb\nb\tde\tbbb\nc\tde\tbbb\n" + "\xff")


@pytest.mark.parametrize("name", ["", "missing.tsv"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=r"^engine\.echo\.table: .*readable"):
        load_table(tmp_path / name)


def test_mode_table_without_a_file_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"engine\.echo: .*engine\.echo\.table"):
        load_settings(WorkerSettings, None, {"engine.kind": "echo", "engine.echo.mode": "table"})

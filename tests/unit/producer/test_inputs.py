"""Unit tests of jobs from texts, lines and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_producer.cli.inputs import (
    InvalidInput,
    JobDefaults,
    count_lines,
    jobs_of_file,
    jobs_of_lines,
    jobs_of_text,
    looks_like_a_file,
)
from dragoman_schemas.jobs import MAX_TEXT_BYTES

_DE = JobDefaults("de")


def no_refusal(line: int, why: str) -> None:
    raise AssertionError(f"{line}: {why}")


def test_fields_of_a_line_win_over_the_options(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"job_id": "a", "text": "x", "target_lang": "fr", "source_lang": null}')
    ((job, has_id),) = jobs_of_file(path, JobDefaults("de", "en"), no_refusal)
    assert has_id
    assert (job.job_id, job.target_lang, job.source_lang) == ("a", "fr", "en")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[1]", "is not a JSON object"),
        (b'{"text": "a", "text": "b"}', "repeats a name"),
        (b'{"text": "\\ud800"}', "surrogate"),
        (b'{"text": "a", "sampling": {"seed": NaN}}', "NaN"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"text": "a", "deadline": "tomorrow"}', "deadline: must be an RFC 3339"),
        (b'{"text": 5}', "text"),
    ],
)
def test_an_invalid_line_is_reported_by_number_and_the_next_is_read(
    tmp_path: Path, line: bytes, why: str
) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(line + b'\n{"job_id": "good", "text": "x"}\n')
    refused: list[tuple[int, str]] = []
    jobs = list(jobs_of_file(path, _DE, lambda number, text: refused.append((number, text))))
    assert [job.job_id for job, _ in jobs] == ["good"]
    ((number, text),) = refused
    assert number == 1
    assert why in text


def test_lines_are_packed_into_jobs_by_count_and_bytes() -> None:
    lines = ["x" * 1000] * 600
    jobs = jobs_of_lines(lines, _DE, no_refusal)
    assert [len(job.items) for job in jobs] == [131, 131, 131, 131, 76]
    assert all(sum(len(item.text) for item in job.items) <= MAX_TEXT_BYTES for job in jobs)
    assert len({job.document.document_id for job in jobs if job.document}) == 1


def test_empty_lines_keep_their_places() -> None:
    (job,) = jobs_of_lines(["a", "", "b"], _DE, no_refusal)
    assert [item.text for item in job.items] == ["a", "", "b"]
    assert job.document is None


def test_a_text_over_the_limit_names_size_and_limit() -> None:
    with pytest.raises(InvalidInput, match=r"131073 .*131072"):
        jobs_of_text("x" * (MAX_TEXT_BYTES + 1), _DE)


def test_lines_are_counted_with_or_without_a_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text("a\nb\n")
    assert count_lines(path) == 2
    path.write_text("a\nb")
    assert count_lines(path) == 2


def test_an_empty_id_is_refused_and_no_other_is_made() -> None:
    wanted = JobDefaults("de", None, "")
    with pytest.raises(InvalidInput, match=r"--id: must be 1-128"):
        jobs_of_text("x", wanted)
    with pytest.raises(InvalidInput, match=r"--id: must be 1-128"):
        jobs_of_lines(["x"], wanted, no_refusal)


def test_several_languages_make_a_job_each_and_an_id_gets_the_language(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(
        '{"job_id": "a", "text": "x"}\n{"text": "x"}\n'
        '{"job_id": "b", "text": "x", "target_lang": "it"}'
    )
    jobs = list(jobs_of_file(path, JobDefaults("de, zh_CN,de"), no_refusal))
    assert [(job.job_id, job.target_lang, has_id) for job, has_id in jobs] == [
        ("a.de", "de", True),
        ("a.zh-CN", "zh-CN", True),
        ("-", "de", False),
        ("-", "zh-CN", False),
        ("b", "it", True),
    ]
    ids = [job.job_id for job in jobs_of_text("x", JobDefaults("de,fr", None, "own"))]
    assert ids == ["own.de", "own.fr"]
    lines = jobs_of_lines(["x"] * 513, JobDefaults("de,fr", None, "own"), no_refusal)
    assert [job.job_id for job in lines] == ["own.de.0", "own.de.1", "own.fr.0", "own.fr.1"]


def test_an_id_that_is_too_long_with_its_language_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"job_id": "' + "a" * 126 + '", "text": "x"}\n')
    refused: list[int] = []
    assert list(jobs_of_file(path, JobDefaults("de,fr"), lambda n, _: refused.append(n))) == []
    assert refused == [1]


def test_options_fill_in_what_a_line_lacks(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"text": "x", "ttl_s": 60}\n')
    more = {"ttl_s": 90, "profile": "chat", "deadline": None, "glossary_id": "terms"}
    ((job, _),) = jobs_of_file(path, JobDefaults("de", None, None, more), no_refusal)
    assert (job.ttl_s, job.profile, job.deadline, job.glossary_id) == (60, "chat", None, "terms")


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("products.csv", True),
        ("job.jsonll", True),
        ("./x", True),
        ("/etc/passwd", True),
        ("Hello.", False),
        ("U.S.A.", False),
        ("and/or", False),
        ("3.5", False),
        ("See report.docx", False),
        ("a\0b", False),
        ("x" * 5_000, False),
    ],
)
def test_a_name_of_a_file_is_told_from_a_text(text: str, looks: bool) -> None:
    assert looks_like_a_file(text) is looks

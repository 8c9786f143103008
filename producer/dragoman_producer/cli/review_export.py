"""Texts of a review as a file for translators: `dragoman review DIR --export FILE`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman_connections.terminal import counted
from dragoman_producer.cli.review_apply import refused
from dragoman_producer.cli.terminal import PARTIAL, SUCCESS, print_json, print_line, print_note

if TYPE_CHECKING:
    from dragoman_producer.review.page import Verdict
    from dragoman_producer.review.rows import StandingFolder

_TMX: Final = ".tmx"
_SUFFIXES: Final = (".xlf", ".xliff", _TMX)


def check(path: Path) -> None:
    """Refuse a file whose suffix is of no format that is written."""
    if path.suffix.lower() not in _SUFFIXES:
        raise refused(f"--export {path}: give a file in {', '.join(_SUFFIXES)}")


def write(
    standing: StandingFolder,
    lang: str,
    verdicts: tuple[Verdict, ...],
    paths: tuple[Path, Path],
    *,
    as_json: bool,
) -> int:
    """Write the file and return the exit status; `paths` are the folder of outputs and the file."""
    from dragoman_producer.runs.outputs import Outputs

    path = paths[1]
    is_tmx = path.suffix.lower() == _TMX
    if is_tmx and standing.request.translation.source_lang is None:
        raise refused(
            f"--export {path}: TMX names the source language, and the last run did not; "
            "repeat it with --from, or export XLIFF"
        )
    try:
        written, left_out = (_tmx if is_tmx else _xliff)(standing, lang, verdicts, paths)
    except OSError as error:
        raise refused(
            f"--export {path}: {error.strerror}; give a file that can be written"
        ) from None
    Outputs(standing.request, standing.manifest).remember(path)
    if left_out:
        print_note(
            f"dragoman review: {counted(left_out, 'segment')} left out of the file, because XML "
            "cannot hold some of their characters; review them in the pages"
        )
    if as_json:
        print_json({"path": str(path), "segments": written, "left_out": left_out})
    else:
        print_line(str(path))
    return PARTIAL if left_out else SUCCESS


def _xliff(
    standing: StandingFolder, lang: str, verdicts: tuple[Verdict, ...], paths: tuple[Path, Path]
) -> tuple[int, int]:
    from dragoman_producer.review import xliff
    from dragoman_producer.review.coded import coded
    from dragoman_producer.review.writing import review_of

    with paths[1].open("w", encoding="utf-8") as file:
        rows = asyncio.run(coded(standing, lang, verdicts))
        file.writelines(xliff.written(review_of(standing, lang, paths[0]), rows))
    left_out = len(xliff.left_out(rows))
    return len(rows) - left_out, left_out


def _tmx(
    standing: StandingFolder, lang: str, verdicts: tuple[Verdict, ...], paths: tuple[Path, Path]
) -> tuple[int, int]:
    from dragoman_producer.review.writing import review_of, write_tmx

    with paths[1].open("w", encoding="utf-8") as file:
        texts = (each for each in standing.stored(lang) if each.row.verdict in verdicts)
        review = review_of(standing, lang, paths[0])
        writer = write_tmx(review, texts, lambda line: print(line, file=file))
    return writer.written, writer.left_out

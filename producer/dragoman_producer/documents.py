"""Documents: files in, a mirrored folder of translated files out.

::

    async with TranslationClient() as client:
        async for event in documents.translate(client, ["docs"], to=["de"], out="out"):
            print(event)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_producer.runs.events import Event
from dragoman_producer.runs.request import IN_FLIGHT, Layout, Reading, RunRequest, Stop, Translation

if TYPE_CHECKING:
    from dragoman_producer.runs.running import Client
    from dragoman_producer.runs.texts import stream, translate_texts

__all__ = ["Event", "Reading", "Stop", "Translation", "stream", "translate", "translate_texts"]


def __getattr__(name: str) -> object:
    if name in {"stream", "translate_texts"}:
        from dragoman_producer.runs import texts  # noqa: PLC0415  loads Kafka and Redis

        return getattr(texts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


async def translate(
    client: Client,
    paths: Sequence[str | PathLike[str]],
    *,
    to: Sequence[str],
    out: str | PathLike[str],
    translation: Translation | None = None,
    reading: Reading | None = None,
    layout: Layout = "folders",
    copy_others: bool = False,
    overwrite: bool = False,
    replace_poorer: bool = False,
    anchors: str = "auto",
    links_fail: bool = False,
    in_flight: int = IN_FLIGHT,
    stop: Stop | None = None,
    cancel: bool = False,
    dry_run: bool = False,
) -> AsyncGenerator[Event]:
    """Translate files and folders into `out`, and yield what happens; the last is Finished.

    Calling `stop` ends the run and its report is written; with `cancel` its jobs in flight are
    cancelled then. With `dry_run` files and segments are only counted: `Planned` has the numbers.
    A run that was stopped goes on where it stopped, and one that was finished costs only what has
    changed. `anchors` is how Markdown keeps links to headings, as `--anchors`; with `links_fail`
    links that broke make the exit status 3. Raises ValueError
    for a language, site, way of `anchors` or stored glossary that does not exist, and TypeError for
    one string in the place of a list.
    """
    from dragoman_producer.runs.translating import run_documents  # noqa: PLC0415  Redis, Kafka
    from dragoman_schemas.languages import normalise  # noqa: PLC0415

    if isinstance(paths, str | PathLike):
        raise TypeError("paths: give a list of files and folders, not one of them")
    if isinstance(to, str):
        raise TypeError(f"to: give a list of languages, such as [{to!r}]")
    if not to:
        raise ValueError("to: give at least one language")
    request = RunRequest(
        paths=tuple(Path(path) for path in paths),
        to=tuple(dict.fromkeys(normalise(lang) for lang in to)),
        out=Path(out),
        translation=translation or Translation(),
        reading=reading or Reading(),
        layout=layout,
        copy_others=copy_others,
        overwrite=overwrite,
        replace_poorer=replace_poorer,
        anchors=anchors,
        links_fail=links_fail,
        in_flight=in_flight,
        cancel=cancel,
        dry_run=dry_run,
    )
    async with aclosing(run_documents(client, request, stop=stop)) as events:
        async for event in events:
            yield event

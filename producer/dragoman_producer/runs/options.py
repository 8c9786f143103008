"""The request that the options of `dragoman translate` make, checked."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from dragoman_connections.terminal import counted
from dragoman_documents import registry
from dragoman_documents.markup.anchors.settings import CHOICES
from dragoman_documents.markup.sites import NAMES
from dragoman_producer.operations.glossary_files import Languages, read_glossary
from dragoman_producer.operations.text_files import InvalidFile
from dragoman_producer.runs.batching import MOST_TERMS
from dragoman_producer.runs.request import Layout, OnFail, Reading, RunRequest, Translation
from dragoman_schemas.jobs import Formality, MemoryUse, QualityLevel, TranslationJob
from dragoman_schemas.languages import UnknownLanguage, normalise
from dragoman_schemas.nearest import invalid_choice
from dragoman_schemas.problems import sentence

_OPTIONS = {"do_not_translate": "--keep", "source_lang": "--from", "glossary_id": "--glossary"}


class Unusable(ValueError):
    """Options that make no request; the message names the option."""


def request_of(paths: list[Path], out: Path, given: Mapping[str, Any]) -> RunRequest:
    """Return the request of the options of the command. Raises Unusable."""
    to = list(dict.fromkeys(_language("--to", each) for each in given["to"].split(",")))
    source = _language("--from", given["source"]) if given["source"] else None
    if source in to:
        raise Unusable(f"--to: {source} is the language of the source (--from); leave it out")
    if out.exists() and not out.is_dir():
        raise Unusable(f"--out {out}: it is a file; give a folder")
    if given["add"] and given["in_place"]:
        raise Unusable("--add and --in-place: give one of them")
    if not given["dry_run"] and (given["rate"] is not None or given["price"] is not None):
        raise Unusable("--rate and --price: they are for --dry-run")
    if given["rate"] is not None and not given["rate"] > 0:
        raise Unusable("--rate: give more than 0 texts per second")
    if len(to) > 1 and given["glossary"] and Path(given["glossary"]).is_file():
        raise Unusable("--glossary FILE is for one language in --to; store it to use it for more")
    return RunRequest(
        paths=tuple(paths),
        to=tuple(to),
        out=out,
        translation=_translation(given, source, to[0]),
        reading=_reading(given),
        layout=_one_of("--layout", given["layout"], get_args(Layout)),
        copy_others=_one_of("--others", given["others"], ("skip", "copy")) == "copy",
        in_flight=given["in_flight"],
        overwrite=given["overwrite"],
        replace_poorer=given["replace_poorer"],
        anchors=_one_of("--anchors", given["anchors"], CHOICES),
        links_fail=given["links_fail"],
        cancel=given["cancel"],
        dry_run=given["dry_run"],
        rate=given["rate"],
        price=given["price"],
    )


def _translation(given: Mapping[str, Any], source: str | None, to: str) -> Translation:
    terms, name, notes = _glossary(given["glossary"], source, to)
    made = Translation(
        source_lang=source,
        notes=notes,
        glossary=terms,
        glossary_id=name,
        keep=tuple(_lines(given["keep"])),
        formality=_choice("--formality", given["formality"], Formality),
        instructions=tuple(given["instructions"] or ()),
        profile=given["profile"],
        quality=_choice("--quality", given["quality"], QualityLevel),
        on_fail=_one_of("--on-fail", given["on_fail"], get_args(OnFail)),
        memory=_choice("--memory", given["memory"], MemoryUse),
    )
    try:
        for first in range(0, len(made.keep) or 1, MOST_TERMS):
            some = replace(made, keep=made.keep[first : first + MOST_TERMS])
            fields = {"job_id": "check", "text": "x", "target_lang": to, **some.fields()}
            TranslationJob.model_validate(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = str(problem["loc"][0] if problem["loc"] else "")
        option = _OPTIONS.get(field, f"--{field}")
        why = sentence([problem]).removeprefix(f"{field}: ")
        raise Unusable(f"{option}: {why}") from None
    return made


def _reading(given: Mapping[str, Any]) -> Reading:
    general, formats = _formats(given["format"] or ())
    return Reading(
        include=tuple(given["include"] or ()),
        exclude=tuple(given["exclude"] or ()),
        format=general,
        formats=formats,
        columns=tuple(given["columns"] or ()),
        fields=tuple(given["fields"] or ()),
        keys=tuple(given["keys"] or ()),
        ids=(given["id"],) if given["id"] else (),
        in_place=given["in_place"],
        add=given["add"],
        bilingual=given["bilingual"],
        refresh=given["refresh"],
        encoding=_encoding(given["encoding"]),
        site=site_of(given["site"]),
        headings=_one_of("--context", given["context"], ("none", "headings")) == "headings",
    )


def site_of(given: str | None) -> str | None:
    """Return the site of `--site`. Raises Unusable."""
    return _one_of("--site", given, NAMES) if given else None


def _formats(given: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the format of all files, and the formats by name or path."""
    known = sorted(registry.formats())
    general: list[str] = []
    by_glob: list[str] = []
    for each in given:
        pattern, equals, name = each.rpartition("=")
        if equals and not pattern:
            raise Unusable(f"--format: {each!r} has no pattern before =; give GLOB=NAME")
        _one_of("--format", name, known)
        (by_glob if equals else general).append(each)
    if len(general) > 1:
        raise Unusable(
            f"--format: all files cannot be {' and '.join(general)}; give GLOB=NAME for some"
        )
    return general[0] if general else None, tuple(by_glob)


def _glossary(
    given: str | None, source: str | None, to: str
) -> tuple[Mapping[str, str], str | None, tuple[str, ...]]:
    """Return the terms of a file, or the name of a stored glossary, and what is to be said."""
    if given is None or not Path(given).exists():
        return {}, given, ()
    if not Path(given).is_file():
        raise Unusable(
            f"--glossary {given}: it is a folder; give a TSV, CSV or TMX file, or a name"
        )
    try:
        draft = read_glossary([Path(given)], Languages(source, to))
    except InvalidFile as error:
        raise Unusable(f"--glossary: {error}") from None
    entries = [each for terms in draft.entries().values() for each in terms]
    several = sum(len(each.targets) > 1 for each in entries)
    note = (
        f"--glossary {given}: only the first target is used of {counted(several, 'term')} with "
        "several; store the glossary (`dragoman glossary add`) to allow all of them"
    )
    terms = {each.source: next(iter(each.targets)) for each in entries}
    return terms, None, (note,) if several else ()


def _encoding(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError):
        raise Unusable(
            f"--encoding: there is no encoding {name!r}; give one such as cp1252"
        ) from None


def _lines(path: Path | None) -> Iterable[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    except OSError as error:
        raise Unusable(f"--keep {path}: {error.strerror}; give a readable file") from None
    except UnicodeDecodeError as error:
        raise Unusable(f"--keep {path}: it is not UTF-8 (byte {error.start})") from None


def _language(option: str, tag: str) -> str:
    try:
        return normalise(tag.strip())
    except UnknownLanguage as error:
        raise Unusable(f"{option}: {error}") from None


def _choice(option: str, given: str | None, known: Any) -> Any:
    """Return the value of an option that may be left out. `known` is the type of its values."""
    return None if given is None else _one_of(option, given, get_args(known))


def _one_of(option: str, given: str, known: Sequence[str]) -> Any:
    if given not in known:
        raise Unusable(f"{option}: {invalid_choice(given, known)}")
    return given

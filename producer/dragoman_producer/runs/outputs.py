"""Files of outputs: what is there is looked at first, and replaced whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.outputs import WrittenFiles
from dragoman_producer.runs.paths import sha256_of, shown, stored
from dragoman_producer.runs.refusals import NO_SPACE, DocumentRefused, is_full
from dragoman_producer.runs.request import RunRequest
from dragoman_producer.runs.selecting import escapes, is_source


class Outputs:
    """The outputs of a folder. A file that no run wrote is replaced only if that is asked for."""

    def __init__(self, request: RunRequest, manifest: Manifest) -> None:
        self._request = request
        self._written = WrittenFiles(manifest)

    def wrote(self, path: str) -> bool:
        """Return whether a run wrote a path in the folder of outputs, whatever it holds now."""
        return self._written.has(stored(path))

    def check(self, output: Path, source: Path) -> None:
        """Make the folder of an output that can be there. Raises DocumentRefused and OSError."""
        self._check_inside(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        if is_source(output, source):
            raise DocumentRefused("collision", "its output would replace it; give another --out")
        if output.is_dir():
            raise DocumentRefused("collision", f"its output, {shown(str(output))}, is a folder")

    def collision(self, output: Path) -> DocumentRefused | None:
        """Return why an output must stay: no run wrote what it holds."""
        if self._request.overwrite or not os.path.lexists(output):
            return None
        if self._is_ours(output, sha256_of(output)):
            return None
        detail = f"{shown(str(output))} was changed by hand, or no run wrote it"
        return DocumentRefused("collision", f"{detail}; move it, or give --overwrite")

    def recover(self, report: Path) -> None:
        """Take the outputs of a report as ours if the manifest knows of none: it was lost."""
        if not self._written.any():
            self._written.add(_reported(report))

    def publish(self, temporary: Path, output: Path, sha256: str | None) -> bool:
        """Put a file with this digest in the place of an output, unless its bytes are there.

        Return whether they were not. Raises DocumentRefused, NoSpace, OSError. The digest is stored
        before: after a crash in between the file is known as ours.
        """
        self._check_inside(output)
        there = sha256_of(output)
        if there != sha256 and (why := self.collision(output)) is not None:
            raise why
        row = (self._name(output), sha256)
        self._written.add([row])
        if there != sha256:
            temporary.replace(output)
        self._written.keep_only(*row)
        return there != sha256

    def remember(self, path: Path) -> None:
        """Record a file of a review, so that no run reads it as a source. Raises NoSpace."""
        real, out = path.resolve(), self._request.out.resolve()
        if not real.is_relative_to(out):
            return
        self._written.add([(stored(str(real.relative_to(out))), sha256_of(real))])

    def is_kept(self, output: Path, sha256: str) -> bool:
        """Return whether an output with this digest may stay: it is there, as it was or edited.

        One that another run wrote, as with other options, may not.
        """
        found = sha256_of(output)
        if found is None or found == sha256:
            return found is not None
        return not self._request.overwrite and not self._is_ours(output, found)

    def _check_inside(self, output: Path) -> None:
        if escapes(self._request, output):
            where = shown(str(output))
            raise DocumentRefused(
                "outside", f"its output, {where}, would be outside of the folder of outputs"
            )

    def _is_ours(self, output: Path, sha256: str | None) -> bool:
        """Return whether a run wrote what an output holds."""
        return self._written.holds(self._name(output), sha256)

    def _name(self, output: Path) -> str | bytes:
        return stored(str(output.relative_to(self._request.out)))


def _reported(report: Path) -> Iterator[tuple[str, str]]:
    """Yield path and digest of the outputs of a report; none of a file that is no report."""
    try:
        documents = json.loads(report.read_bytes())["documents"]
        found = [(each["output"], each["sha256"]) for each in documents]
    except (OSError, ValueError, LookupError, TypeError):
        return
    yield from (pair for pair in found if all(isinstance(each, str) for each in pair))


def unwritten(error: OSError, output: Path) -> DocumentRefused:
    """Return why an output cannot be written."""
    if is_full(error):
        return naming(DocumentRefused(NO_SPACE, error.strerror or "the disk is full"), output)
    return DocumentRefused("outside", f"{shown(str(output))} cannot be written: {error.strerror}")


def naming(refused: DocumentRefused, output: Path) -> DocumentRefused:
    """Return a refusal that names the output if the disk of it is full."""
    if refused.reason != NO_SPACE:
        return refused
    return DocumentRefused(NO_SPACE, f"{shown(str(output))} cannot be written: {refused.detail}")

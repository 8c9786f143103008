"""The report of a run: `DIR/report.json`, without any text of the documents."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TextIO

from dragoman_connections.terminal import safe_json
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.runs import RunRows
from dragoman_producer.runs.events import SiteFound
from dragoman_producer.runs.links import Links
from dragoman_producer.runs.paths import shown
from dragoman_producer.runs.planning import Target
from dragoman_producer.runs.request import RunRequest
from dragoman_producer.runs.selecting import REPORT, STATE_FOLDER
from dragoman_producer.runs.tally import COUNTS
from dragoman_producer.runs.writing import ENCODING, POORER

SCHEMA: Final = 1


class RunReport:
    """Reads what a run did from the manifest."""

    def __init__(self, request: RunRequest, manifest: Manifest, run: str) -> None:
        self._request = request
        self._stored = RunRows(manifest, run)
        self._run = run
        self._began = time.time()

    def exit_status(self) -> int:
        """Return 0 if all is done, 1 if nothing is, 3 if some segment or document is not."""
        statuses = self._stored.statuses()
        kept = self._stored.count_outputs(POORER)
        good = kept + sum(statuses.get(name, 0) for name in ("done", "unchanged"))
        bad = statuses.get("failed", 0) + self._stored.count_refused()
        if bad or statuses.get("partial"):
            return 3 if good or statuses.get("partial") else 1
        return 0 if good else 1

    def totals(
        self,
        targets: list[Target],
        tokens: int,
        *,
        hidden: int = 0,
        other_outputs: int = 0,
        sites: Iterable[SiteFound] = (),
        links: Links | None = None,
    ) -> dict[str, Any]:
        """Return the members of the report besides the documents.

        Hidden files and outputs of other runs are counted alone: they were not read.
        """
        request = self._request
        return {
            "schema": SCHEMA,
            "run": self._run,
            "began": round(self._began, 3),
            "seconds": round(time.time() - self._began, 3),
            "tokens": tokens,
            "options": request.reported_options(),
            "hidden": hidden,
            "other_outputs": other_outputs,
            "sites": [asdict(each) for each in sites],
            "links": (links or Links()).reported(),
            "targets": {target.lang: self._of_target(target) for target in targets},
        }

    def _of_target(self, target: Target) -> dict[str, int]:
        row = self._stored.sums(target.number, COUNTS)
        new, memory = self._stored.unique(target.number)
        names = ("documents", "written", *COUNTS)
        counts = {name: int(value or 0) for name, value in zip(names, row, strict=True)}
        repeats = counts["new"] + counts["memory"] - new - memory
        return counts | {"new": new, "memory": memory, "reused": counts["reused"] + max(0, repeats)}

    def record(self, segments: int, seconds: float) -> None:
        """Record the run as it is now: also outputs of one that is killed can be reviewed."""
        options = json.dumps(self._request.writing_options())
        self._stored.put(time.time() - seconds, segments, seconds, options)

    def write(self, totals: dict[str, Any]) -> Path:
        """Write the report whole, document by document. Raises OSError that names it."""
        path = self._request.out / REPORT
        temporary = self._request.out / STATE_FOLDER / REPORT
        try:
            with temporary.open("w", encoding="utf-8") as file:
                head = safe_json(json.dumps(totals, ensure_ascii=False, indent=1))
                file.write(head.rstrip("}").rstrip() + ',\n "documents": [')
                self._write_documents(file)
                file.write("\n ]\n}\n")
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(path)) from error
        return path

    def _write_documents(self, file: TextIO) -> None:
        comma = "\n  "
        for document in self._documents():
            file.write(comma + safe_json(json.dumps(document, ensure_ascii=False)))
            comma = ",\n  "

    def _documents(self) -> Iterator[dict[str, Any]]:
        for path, format_name, site, reason, detail, skipped in self._stored.refused():
            status = "skipped" if skipped else "failed"
            yield {
                "path": shown(path), "target_lang": None, "format": format_name, "site": site,
                "encoding": None,
                "status": status, "reason": reason, "detail": detail, "output": None,
                "sha256": None, "counts": dict.fromkeys(COUNTS, 0), "output_encoding": None,
                "issues": [],
            }  # fmt: skip
        yield from map(self._document, self._stored.documents())

    def _document(self, row: Any) -> dict[str, Any]:
        file, target, path, lang, *rest = row
        format_name, site, encoding, status, reason, detail, output, sha256, counts = rest
        found = {
            "path": shown(path), "target_lang": lang, "format": format_name, "site": site,
            "encoding": encoding,
            "status": status, "reason": reason, "detail": detail,
            "output": None if status == "failed" else self._relative(output), "sha256": sha256,
            "counts": json.loads(counts),
        }  # fmt: skip
        issues = [
            {
                "segment": None if number < 0 else number + 1, "place": place, "code": code,
                "detail": why, "kind": kind, "count": count,
            }
            for number, place, code, why, kind, count in self._stored.issues(
                file, target
            )
        ]  # fmt: skip
        codes = {issue["code"] for issue in issues}
        written = "utf-8" if ENCODING in codes else encoding
        return {**found, "output_encoding": written if found["output"] else None, "issues": issues}

    def _relative(self, output: str | bytes) -> str:
        path = shown(output)
        return path.removeprefix(f"{shown(str(self._request.out))}/")

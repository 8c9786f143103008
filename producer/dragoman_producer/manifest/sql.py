"""All SQL of the manifest: tables, the steps from older versions, and every statement.

Tables and columns: docs/reference/manifest.md. A question mark stands for a value.
"""
# ruff: noqa: S608  what is formatted into statements here are constants and marks

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

VERSION: Final = 3
"""The pragma `user_version` of a manifest."""
EDITED: Final = "edited"
"""Value of `translation.code` for a person's text."""

_TABLES: Final = """
CREATE TABLE run (
  id TEXT PRIMARY KEY, began REAL, segments INTEGER, seconds REAL, options TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE target (
  id INTEGER PRIMARY KEY, lang TEXT NOT NULL, settings TEXT NOT NULL, UNIQUE (lang, settings)
);
CREATE TABLE file (
  id INTEGER PRIMARY KEY, path NOT NULL, lang TEXT NOT NULL, source, reading TEXT, format TEXT,
  sha256 TEXT, encoding TEXT, segments INTEGER, reason TEXT, detail TEXT, run TEXT,
  codec INTEGER NOT NULL DEFAULT 1, site TEXT, UNIQUE (path, lang)
);
CREATE TABLE segment (
  id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text TEXT NOT NULL, context TEXT,
  max_chars INTEGER
);
CREATE TABLE occurrence (
  file INTEGER NOT NULL, number INTEGER NOT NULL, part INTEGER NOT NULL, segment INTEGER,
  glue TEXT, place TEXT NOT NULL, PRIMARY KEY (file, number, part)
) WITHOUT ROWID;
CREATE TABLE job (
  id TEXT PRIMARY KEY, target INTEGER NOT NULL, document TEXT NOT NULL, number INTEGER NOT NULL,
  segments TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX job_open ON job (target, ended, document, number);
CREATE TABLE translation (
  target INTEGER NOT NULL, segment INTEGER NOT NULL, text TEXT, quality TEXT, notes TEXT,
  code TEXT, retry INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0, run TEXT,
  PRIMARY KEY (target, segment)
) WITHOUT ROWID;
CREATE TABLE refresh (target INTEGER NOT NULL, run TEXT NOT NULL, PRIMARY KEY (target, run))
WITHOUT ROWID;
CREATE TABLE output (
  file INTEGER NOT NULL, target INTEGER NOT NULL, path NOT NULL, sha256 TEXT, source TEXT,
  status TEXT, reason TEXT, detail TEXT, counts TEXT, run TEXT, PRIMARY KEY (file, target)
) WITHOUT ROWID;
CREATE TABLE written (path NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (path, sha256))
WITHOUT ROWID;
CREATE TABLE issue (
  file INTEGER NOT NULL, target INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT,
  code TEXT NOT NULL, detail TEXT, kind TEXT, count INTEGER
);
CREATE INDEX issue_of ON issue (file, target);
"""
_STEPS: Final = {
    1: ("ALTER TABLE file ADD COLUMN codec INTEGER NOT NULL DEFAULT 1",),
    2: (
        "ALTER TABLE file ADD COLUMN site TEXT",
        "ALTER TABLE issue ADD COLUMN kind TEXT",
        "ALTER TABLE issue ADD COLUMN count INTEGER",
    ),
}
"""The statements that turn a version into the next one."""
_LATER: Final = (
    "CREATE INDEX IF NOT EXISTS translation_edited ON translation (target) WHERE code='edited'",
    (
        "CREATE TABLE IF NOT EXISTS stood (path NOT NULL, segment INTEGER NOT NULL,"
        " PRIMARY KEY (path, segment)) WITHOUT ROWID"
    ),
)
"""What the first manifests of a version lack."""


class NoManifest(Exception):
    """The file is no manifest, or one of a later version."""


def migrate(db: sqlite3.Connection) -> None:
    """Make the tables, or those of this version of an older one. Raises NoManifest.

    It runs in a transaction of the caller.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not version:
        _make(db)
    elif version > VERSION or db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise NoManifest
    for step in range(version or VERSION, VERSION):
        for statement in _STEPS[step]:
            db.execute(statement)
    for statement in _LATER:
        db.execute(statement)
    db.execute(f"PRAGMA user_version={VERSION}")


def _make(db: sqlite3.Connection) -> None:
    if db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        raise NoManifest
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            db.execute(statement)


# --- targets --------------------------------------------------------------------------------------

ADD_TARGET: Final = "INSERT OR IGNORE INTO target (lang, settings) VALUES (?,?)"
TARGET_ID: Final = "SELECT id FROM target WHERE lang=? AND settings=?"
TARGET_LANGS: Final = "SELECT DISTINCT lang FROM target"

# --- files ----------------------------------------------------------------------------------------

FILE_READINGS: Final = "SELECT id, lang, sha256, reading, codec FROM file WHERE path=?"
FILE_IS_OF_RUN: Final = "UPDATE file SET run=?, source=? WHERE id=?"
FILE_OUTCOME: Final = "SELECT reason, segments, detail FROM file WHERE path=?"
REFUSE_FILE: Final = "UPDATE file SET reason=?, detail=? WHERE id=?"
ADD_FILE: Final = (
    "INSERT INTO file (path, lang, source, format, codec, site, segments, run)"
    " VALUES (?,?,?,?,?,?,0,?)"
)
OTHER_READINGS: Final = "path=? AND id<>? AND (lang=? OR lang='' OR ?='')"
SAME_READING: Final = "path=? AND lang=?"
_OF_A_FILE: Final = (("occurrence", "file"), ("issue", "file"), ("output", "file"), ("file", "id"))


def forget_files(db: sqlite3.Connection, which: str, values: tuple[object, ...]) -> None:
    """Remove files and what was found in them; their translations stay.

    What their outputs hold is remembered: the outputs still stand.
    """
    files = db.execute(f"SELECT id FROM file WHERE {which}", values).fetchall()
    db.executemany(REMEMBER_OUTPUTS, files)
    for table, column in _OF_A_FILE:
        db.executemany(f"DELETE FROM {table} WHERE {column}=?", files)


END_FILE: Final = (
    "UPDATE file SET lang=?, reading=?, sha256=?, encoding=?, segments=?, detail=? WHERE id=?"
)
READINGS: Final = (
    "SELECT path, format, segments, reason IS NOT NULL, CASE WHEN reason IS NULL THEN detail END"
    " FROM file WHERE run=? AND format IS NOT NULL ORDER BY id"
)
_IS_OPEN: Final = (
    "f.run=? AND f.reason IS NULL AND f.lang IN ('',?) AND NOT EXISTS (SELECT 1 FROM output p"
    " WHERE p.file = f.id AND p.target=? AND p.run = f.run AND p.status='failed')"
)
"""Condition for files of a run, of a language and of a target, that have not failed in it."""
FILES_OF_TARGET: Final = f"SELECT f.id FROM file f WHERE {_IS_OPEN} ORDER BY f.id"
FILES_MISSING: Final = (
    f"SELECT f.id FROM file f WHERE {_IS_OPEN} AND EXISTS (SELECT 1 FROM occurrence o"
    " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
    " WHERE o.file = f.id AND o.segment IS NOT NULL AND (? OR t.text IS NULL)) ORDER BY f.id"
)
"""Of these, the files with a segment that is to be sent; all with one if a run sends all anew."""
FILE: Final = "SELECT path, source, format, site, sha256, reading FROM file WHERE id=?"
FILE_ORIGIN: Final = "SELECT source, format, site, sha256 FROM file WHERE id=?"
LINKED_PATHS: Final = (
    "SELECT DISTINCT path FROM file WHERE run=? AND format IN ('markdown', 'mdx', 'ipynb')"
)
FILES_UNREAD: Final = (
    "SELECT path, source FROM file WHERE run=? AND format IS NULL"
    " AND reason IN ('unsupported_format', 'configuration')"
)
FILE_SEGMENTS: Final = "SELECT segments FROM file WHERE id=?"
FILE_PATHS: Final = "SELECT id, path FROM file"

# --- segments and where they occur ----------------------------------------------------------------

ADD_SEGMENT: Final = (
    "INSERT OR IGNORE INTO segment (digest, text, context, max_chars) VALUES (?,?,?,?)"
)
ADD_OCCURRENCE: Final = (
    "INSERT INTO occurrence (file, number, part, segment, glue, place)"
    " VALUES (?,?,?,(SELECT id FROM segment WHERE digest=?),?,?)"
)
PLACE: Final = "SELECT place FROM occurrence WHERE file=? AND number=?"
TRANSLATED_OCCURRENCES: Final = (
    "SELECT o.number, o.part, o.segment, o.glue, o.place, t.text, t.quality, t.notes, t.code,"
    " t.cached, t.run, t.segment FROM occurrence o"
    " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
    " WHERE o.file=? ORDER BY o.number, o.part"
)
"""Of a file, in its order, with their translations into a target."""
FIRST_UNSETTLED: Final = (
    "SELECT o.number FROM occurrence o"
    " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
    " WHERE o.file=? AND o.number >= ? AND o.segment IS NOT NULL"
    " AND (t.segment IS NULL OR t.retry = 1) ORDER BY o.number LIMIT 1"
)

# --- what a run wants -----------------------------------------------------------------------------

WANTED_TABLE: Final = "CREATE TEMP TABLE IF NOT EXISTS wanted (segment INTEGER PRIMARY KEY)"
EMPTY_WANTED: Final = "DELETE FROM wanted"
WANT_SEGMENTS: Final = (
    "INSERT OR IGNORE INTO wanted SELECT o.segment FROM occurrence o"
    f" JOIN file f ON f.id = o.file WHERE o.segment IS NOT NULL AND {_IS_OPEN}"
)
COUNT_OCCURRENCES: Final = (
    "SELECT COUNT(*) FROM occurrence o JOIN file f ON f.id = o.file"
    f" WHERE o.segment IS NOT NULL AND {_IS_OPEN}"
)
COUNT_WANTED: Final = "SELECT COUNT(*) FROM wanted"
_STALE: Final = f"code IS NOT '{EDITED}' AND run NOT IN (SELECT run FROM refresh WHERE target=?)"
"""Condition for a machine's translation from before the refresh that is under way."""
_HELD: Final = (
    f"SELECT segment FROM translation WHERE target=? AND text IS NOT NULL AND NOT (? AND {_STALE})"
    f" AND NOT (? AND code IS '{EDITED}') UNION SELECT wanted FROM edited WHERE NOT ?"
)
"""Segments that need nothing; a dry run has removed nothing."""
_MISSING: Final = (
    "wanted w JOIN segment s ON s.id = w.segment"
    " LEFT JOIN translation t ON t.target=? AND t.segment = w.segment WHERE t.segment IS NULL"
)
COUNT_MISSING: Final = (
    "SELECT COUNT(*), SUM(LENGTH(s.text)) FROM wanted w JOIN segment s "
    f" ON s.id = w.segment WHERE w.segment NOT IN ({_HELD})"
)
MISSING_SEGMENTS: Final = (
    f"SELECT s.id, s.text, s.context, s.max_chars FROM {_MISSING}"
    " AND w.segment NOT IN planned ORDER BY w.segment"
)
PLANNED_TABLE: Final = "CREATE TEMP TABLE IF NOT EXISTS planned (segment INTEGER PRIMARY KEY)"
EMPTY_PLANNED: Final = "DELETE FROM planned"
ADD_PLANNED: Final = "INSERT OR IGNORE INTO planned VALUES (?)"


def count_missing_of(segments: int) -> str:
    """Return the statement that counts those of so many segments that are missing."""
    return f"SELECT COUNT(*) FROM {_MISSING} AND w.segment IN ({_marks(segments)})"


def segments_of(count: int) -> str:
    """Return the statement that reads so many segments by their ids."""
    return (
        "SELECT id, text, context, max_chars FROM segment"
        f" WHERE id IN ({_marks(count)}) ORDER BY id"
    )


def _marks(count: int) -> str:
    return ",".join("?" * count)


# --- jobs -----------------------------------------------------------------------------------------

ADD_JOB: Final = "INSERT INTO job (id, target, document, number, segments) VALUES (?,?,?,?,?)"
OPEN_JOBS: Final = (
    "SELECT id, document, number, segments FROM job WHERE target=? AND ended=0"
    " ORDER BY document, number"
)
OPEN_JOB_SEGMENTS: Final = "SELECT id, segments FROM job WHERE target=? AND ended=0"
JOBS_OF_DOCUMENT: Final = "SELECT MAX(number) + 1 FROM job WHERE target=? AND document=?"
OPEN_DOCUMENTS: Final = "SELECT DISTINCT document FROM job WHERE target=? AND ended=0"
END_JOB: Final = "UPDATE job SET ended=1 WHERE id=?"
END_JOBS_OF_TARGET: Final = "UPDATE job SET ended=1 WHERE target=?"
END_JOBS_OF_DOCUMENT: Final = "UPDATE job SET ended=1 WHERE document=?"

# --- translations ---------------------------------------------------------------------------------

PUT_TRANSLATION: Final = (
    "INSERT INTO translation (target, segment, text, quality, notes, code, retry, cached, run)"
    " VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET text=excluded.text,"
    " quality=excluded.quality, notes=excluded.notes, code=excluded.code, retry=excluded.retry,"
    f" cached=excluded.cached, run=excluded.run WHERE code IS NOT '{EDITED}'"
)
"""A person may have edited the segment of a job that an earlier run left in flight."""
DROP_RETRIABLE: Final = "DELETE FROM translation WHERE target=? AND retry=1"
DROP_FAILED: Final = "DELETE FROM translation WHERE target=? AND text IS NULL"
DROP_STALE: Final = f"DELETE FROM translation WHERE target=? AND segment IN wanted AND {_STALE}"
COUNT_REFRESHES: Final = "SELECT COUNT(*) FROM refresh WHERE target=?"
ADD_REFRESH: Final = "INSERT INTO refresh VALUES (?,?)"
END_REFRESH: Final = "DELETE FROM refresh WHERE target=?"
RUNS_OF_TRANSLATIONS: Final = (
    "SELECT DISTINCT t.run FROM occurrence o"
    " JOIN translation t ON t.target=? AND t.segment = o.segment WHERE o.file=?"
)
COUNT_NEW: Final = (
    "SELECT SUM(NOT cached), SUM(cached) FROM translation"
    " WHERE target=? AND run=? AND text IS NOT NULL"
)

# --- edits of a review ----------------------------------------------------------------------------

_EDITS: Final = (
    "translation t JOIN target g ON g.id = t.target JOIN segment s ON s.id = t.segment"
    f" WHERE t.code='{EDITED}' AND g.lang=?"
)
_SAME_TEXT: Final = "e.source = s.text AND e.context IS s.context AND e.max_chars IS s.max_chars"
"""Condition for the segment of an edit: the glossary terms in it alone may differ."""
EDIT_TABLES: Final = (
    (
        "CREATE TEMP TABLE IF NOT EXISTS edit"
        " (target, segment, source TEXT, context, max_chars, text, run)"
    ),
    "CREATE INDEX IF NOT EXISTS temp.edit_source ON edit (source)",
    "CREATE TEMP TABLE IF NOT EXISTS edited (wanted, target, segment, text, run)",
    "DELETE FROM edit",
    "DELETE FROM edited",
)
PUT_EDIT: Final = (
    "INSERT OR REPLACE INTO translation"
    " (target, segment, text, quality, code, run) VALUES (?,?,?,'ok',?,?)"
)
COLLECT_EDITS: Final = (
    "INSERT INTO edit SELECT t.target, t.segment, s.text, s.context, s.max_chars, t.text,"
    f" t.run FROM {_EDITS}"
)
MATCH_EDITS: Final = (
    "INSERT INTO edited SELECT w.segment, e.target, e.segment, e.text, e.run"
    " FROM wanted w CROSS JOIN segment s ON s.id = w.segment"
    f" CROSS JOIN edit e ON {_SAME_TEXT}"
)
DROP_EDITS: Final = (
    f"DELETE FROM translation WHERE code='{EDITED}'"
    " AND (target, segment) IN (SELECT target, segment FROM edited)"
)
SETTLE_EDITS: Final = (
    "INSERT OR REPLACE INTO translation (target, segment, text, quality, code, run)"
    f" SELECT ?, wanted, text, 'ok', '{EDITED}', run FROM"
    " (SELECT wanted, text, run, MAX(e.target) FROM edited e WHERE NOT EXISTS"
    " (SELECT 1 FROM translation t WHERE t.target=? AND t.segment = e.wanted"
    f" AND t.code='{EDITED}') GROUP BY wanted)"
)
EDITS: Final = (
    f"SELECT s.text, s.context, s.max_chars, t.text, t.run, t.target, t.segment FROM {_EDITS}"
)
CHANGE_EDIT: Final = "UPDATE translation SET text=?, run=? WHERE target=? AND segment=?"

# --- outputs, and the files that runs wrote -------------------------------------------------------

OUTPUT: Final = (
    "SELECT sha256, source, status, counts, path, detail FROM output WHERE file=? AND target=?"
)
KEEP_OUTPUT: Final = (
    "UPDATE output SET status=?, reason=?, detail=?, counts=?, run=? WHERE file=? AND target=?"
)
DROP_OTHER_OUTPUTS: Final = "DELETE FROM output WHERE file=? AND target<>? AND path=?"
PUT_OUTPUT: Final = "INSERT OR REPLACE INTO output VALUES (?,?,?,?,?,?,?,?,?,?)"
WRITTEN_PATHS: Final = "SELECT path FROM written"
WAS_WRITTEN: Final = "SELECT 1 FROM written WHERE path=? LIMIT 1"
WAS_WRITTEN_SO: Final = "SELECT 1 FROM written WHERE path=? AND sha256=?"
ADD_WRITTEN: Final = "INSERT OR IGNORE INTO written VALUES (?,?)"
DROP_OTHERS_WRITTEN: Final = "DELETE FROM written WHERE path=? AND sha256<>?"

# --- what outputs hold that a run would replace ---------------------------------------------------

STANDING_TARGET: Final = "SELECT target FROM output WHERE file=? AND path=? AND status<>'failed'"
_IS_SOURCE: Final = "number >= 0 AND detail IS NULL AND code <> 'plural'"
"""Condition for the issue of a segment that keeps its source."""
LEFT_IN_SOURCE: Final = f"SELECT number FROM issue WHERE file=? AND target=? AND {_IS_SOURCE}"
REMEMBER_OUTPUTS: Final = (
    "INSERT OR IGNORE INTO stood SELECT p.path, o.segment FROM output p"
    " JOIN occurrence o ON o.file = p.file WHERE p.file=? AND p.status<>'failed'"
    " AND o.segment IS NOT NULL AND o.number NOT IN (SELECT number FROM issue i"
    f" WHERE i.file = p.file AND i.target = p.target AND {_IS_SOURCE})"
)
REMEMBER_OUTPUT: Final = f"{REMEMBER_OUTPUTS} AND p.target=?"
FORGET_STOOD: Final = "DELETE FROM stood WHERE path=?"
STOOD: Final = "SELECT 1 FROM stood WHERE path=? LIMIT 1"
STOOD_TABLES: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS stood_text (text PRIMARY KEY) WITHOUT ROWID",
    "CREATE TEMP TABLE IF NOT EXISTS in_source (number INTEGER PRIMARY KEY)",
    "DELETE FROM stood_text",
    "DELETE FROM in_source",
)
FILL_STOOD_TEXTS: Final = (
    "INSERT OR IGNORE INTO stood_text SELECT s.text FROM stood t"
    " JOIN segment s ON s.id = t.segment WHERE t.path=?"
)
ADD_IN_SOURCE: Final = "INSERT OR IGNORE INTO in_source VALUES (?)"
COUNT_LOST: Final = (
    "SELECT COUNT(*) FROM in_source n WHERE NOT EXISTS (SELECT 1 FROM occurrence o"
    " JOIN segment s ON s.id = o.segment WHERE o.file=? AND o.number = n.number"
    " AND s.text NOT IN (SELECT text FROM stood_text))"
)
"""Of the segments in the source language those whose parts all stood translated."""

# --- issues ---------------------------------------------------------------------------------------

_INTO_ISSUE: Final = "INSERT INTO issue (file, target, number, place, code, detail"
ADD_REMARK: Final = _INTO_ISSUE + ", kind, count) VALUES (?,0,-1,?,'remark',?,?,?)"
ADD_ISSUE: Final = _INTO_ISSUE + ") VALUES (?,?,?,?,?,?)"
REMARK_KINDS: Final = (
    "SELECT kind, SUM(count) FROM issue WHERE file=? AND target=0 AND kind IS NOT NULL"
    " GROUP BY kind ORDER BY 2 DESC, 1"
)
DROP_ISSUES: Final = "DELETE FROM issue WHERE file=? AND target=?"
ISSUES_OF_DOCUMENT: Final = (
    "SELECT number, place, code, detail, kind, count FROM issue"
    " WHERE file=? AND target IN (0,?) ORDER BY number"
)
ISSUES_OF_SEGMENTS: Final = (
    "SELECT number, code, detail FROM issue WHERE file=? AND target=? AND number >= 0"
)

# --- runs and their reports -----------------------------------------------------------------------

PUT_RUN: Final = "INSERT OR REPLACE INTO run VALUES (?,?,?,?,?)"
RATE: Final = "SELECT SUM(segments), SUM(seconds) FROM run WHERE segments > 0"
LAST_RUN: Final = "SELECT id, options FROM run ORDER BY began DESC LIMIT 1"
RUN_OPTIONS: Final = "SELECT options FROM run WHERE id=?"
COUNT_KEPT: Final = "SELECT COUNT(*) FROM output WHERE run=? AND reason=?"
COUNT_STATUSES: Final = "SELECT status, COUNT(*) FROM output WHERE run=? GROUP BY status"
_SKIPPED: Final = "format IS NULL AND reason IN ('unsupported_format', 'configuration', 'outside')"
"""Condition for files that are not to be read: of no known format, configuration, and links."""
COUNT_REFUSED: Final = (
    f"SELECT COUNT(*) FROM file WHERE run=? AND reason IS NOT NULL AND NOT ({_SKIPPED})"
)
REFUSED_FILES: Final = (
    f"SELECT path, format, site, reason, detail, {_SKIPPED} FROM file"
    " WHERE run=? AND reason IS NOT NULL ORDER BY path"
)
DOCUMENTS: Final = (
    "SELECT o.file, o.target, f.path, t.lang, f.format, f.site, f.encoding, o.status,"
    " o.reason, o.detail, o.path, o.sha256, o.counts FROM output o JOIN file f ON f.id = o.file"
    " JOIN target t ON t.id = o.target WHERE o.run=? ORDER BY o.target, o.file"
)
LINKED_DOCUMENTS: Final = (
    "SELECT f.path, f.source, f.format, f.site, o.path FROM output o JOIN file f ON f.id = o.file"
    " WHERE o.run=? AND o.target=? AND o.status <> 'failed'"
    " AND f.format IN ('markdown', 'mdx', 'ipynb') ORDER BY o.file"
)


def sums_of(counts: Iterable[str]) -> str:
    """Return the statement that adds up the counts of a target's outputs of a run."""
    sums = ", ".join(f"SUM(counts ->> '{name}')" for name in counts)
    return f"SELECT COUNT(*), SUM(status <> 'failed'), {sums} FROM output WHERE run=? AND target=?"


# --- what stands in a folder, for its review ------------------------------------------------------

_STANDING: Final = (
    "output p JOIN target g ON g.id = p.target AND g.lang=? WHERE (? IS NULL OR p.run=?)"
    " AND (p.status <> 'failed' OR NOT EXISTS (SELECT 1 FROM output q JOIN target h"
    " ON h.id = q.target AND h.lang = g.lang WHERE q.file = p.file AND q.target <> p.target"
    " AND (q.status <> 'failed' OR q.target > p.target)))"
)
"""The documents of a language: its language, then twice a run or NULL for all.

One that failed is left out if an output of other settings stands in its place.
"""
OUTPUT_LANGS: Final = (
    "SELECT DISTINCT t.lang FROM output o JOIN target t ON t.id = o.target"
    " WHERE ? IS NULL OR o.run=? ORDER BY t.lang"
)
OUTPUT_TARGETS: Final = (
    "SELECT DISTINCT t.id, t.lang FROM output o JOIN target t ON t.id = o.target"
    " WHERE o.run=? ORDER BY t.lang"
)
COUNT_STANDING: Final = (
    "SELECT COUNT(*) FROM occurrence o"
    f" JOIN (SELECT p.file FROM {_STANDING}) p ON o.file = p.file"
    " WHERE o.segment IS NOT NULL"
)
STANDING_SEGMENTS: Final = (
    "SELECT p.file, p.target, p.run, o.segment FROM occurrence o"
    f" JOIN (SELECT p.file, p.target, p.run FROM {_STANDING}) p ON o.file = p.file"
    " WHERE o.segment IS NOT NULL"
)


def standing_texts(files: int | None = None) -> str:
    """Return the statement that reads all texts, or those of so many files."""
    within = "" if files is None else f" AND p.file IN ({_marks(files)})"
    return (
        "SELECT f.path, o.file, o.number, o.place, s.id, s.text, s.context, s.max_chars, t.text,"
        " t.quality, t.code, t.cached, t.run, p.target, p.run FROM"
        f" (SELECT p.file, p.target, p.run FROM {_STANDING}{within}) p"
        " JOIN file f ON f.id = p.file"
        " JOIN occurrence o ON o.file = p.file JOIN segment s ON s.id = o.segment"
        " LEFT JOIN translation t ON t.target = p.target AND t.segment = s.id"
        " ORDER BY p.file, p.target, o.number, o.part"
    )

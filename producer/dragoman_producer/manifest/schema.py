"""Tables of the manifest, and the steps from older versions: see docs/reference/manifest.md.

Statements are in the other modules of this package, each beside the method that runs it.
"""

from __future__ import annotations

import sqlite3
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
    (
        "CREATE TABLE IF NOT EXISTS spent (target INTEGER NOT NULL, model TEXT NOT NULL,"
        " jobs INTEGER NOT NULL, chars INTEGER NOT NULL, prompt INTEGER NOT NULL,"
        " completion INTEGER NOT NULL, squares REAL NOT NULL, PRIMARY KEY (target, model))"
        " WITHOUT ROWID"
    ),
)
"""What the first manifests of a version lack."""
IS_OPEN: Final = (
    "f.run=? AND f.reason IS NULL AND f.lang IN ('',?) AND NOT EXISTS (SELECT 1 FROM output p"
    " WHERE p.file = f.id AND p.target=? AND p.run = f.run AND p.status='failed')"
)
"""Condition for files of a run, of a language and of a target, that have not failed in it."""


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


def marks(count: int) -> str:
    """Return so many question marks, for a list of values."""
    return ",".join("?" * count)

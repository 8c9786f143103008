"""The authorities whose certificates of servers are trusted, read again when their file changes."""

from __future__ import annotations

import ssl
from pathlib import Path

from dragoman_connections.settings import SettingsError


class Trust:
    """The system's authorities, or those in a PEM file."""

    def __init__(self, file: Path | None) -> None:
        """Read the file. Raises SettingsError."""
        self._file = file
        self._read_at: float | None = None
        self.context: ssl.SSLContext | bool = True
        """For connections from now on; True stands for the system's authorities."""
        try:
            self._read()
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"engine.ca_file: {file}: {error}") from None

    def refresh(self) -> None:
        """Read the file if it has changed; one that cannot be read leaves everything as it is."""
        try:
            self._read()
        except (OSError, ssl.SSLError):
            return

    def _read(self) -> None:
        if self._file is None:
            return
        changed_at = self._file.stat().st_mtime
        if changed_at != self._read_at:
            self.context = ssl.create_default_context(cafile=str(self._file))
            self._read_at = changed_at

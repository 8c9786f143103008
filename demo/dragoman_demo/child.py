"""How does the trial start a process and be sure that it ends with the trial?"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self


class ChildFailed(Exception):
    """A process of the trial did not start or ended early; the message holds its last lines."""


class LeashedChild:
    """A command that runs while the context is open, its output in the file `log`.

    It ends when the context is left, and also when this process is killed (see `leash`).
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        grace_s: float = 5.0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self._command = list(command)
        self._grace_s = grace_s
        self._env = {**os.environ, **(env or {})}
        self._leash: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self.log.open("ab") as output:
            self._leash = await asyncio.create_subprocess_exec(
                sys.executable,
                str(Path(__file__).with_name("leash.py")),
                str(self._grace_s),
                *self._command,
                env=self._env,
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                # Ctrl-C goes to the trial alone, which then ends its children in order.
                start_new_session=True,
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._leash is not None:
            await end(self._leash, within_s=self._grace_s + 5.0)

    @property
    def ended(self) -> bool:
        return self._leash is None or self._leash.returncode is not None

    @property
    def exit_status(self) -> int | None:
        return None if self._leash is None else self._leash.returncode

    async def wait(self) -> int:
        """Its exit status, once it has ended by itself."""
        if self._leash is None:
            raise RuntimeError("the child is not started")
        return await self._leash.wait()

    def last_lines(self, count: int) -> str:
        """The end of what it wrote."""
        return last_lines(self.log, count)


async def end(process: asyncio.subprocess.Process, *, within_s: float) -> None:
    """Close the stdin that keeps the process alive and wait for its end; kill it when late."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(within_s):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def last_lines(log: Path, count: int) -> str:
    """The last `count` lines of a log, of its last 64 KiB."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 65_536))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-count:])

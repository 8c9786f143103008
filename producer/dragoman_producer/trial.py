"""Where is `dragoman-demo`? In the repository; the installed client can only say so."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec


def main() -> None:
    """Entry point of the console script: the trial where it is at hand, otherwise where to get it.

    The trial brings a broker, a Redis and a model, which have no place in a light client.
    """
    if find_spec("dragoman_demo") is None:
        sys.stderr.write(
            "dragoman-demo: the trial and its model are part of the repository, not of this "
            "package; in a clone of the repository, run `make demo`\n"
        )
        raise SystemExit(2)
    import_module("dragoman_demo.__main__").main()

"""Where is `dragoman-demo`? In the repository; the installed client can only say so."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec


def main() -> None:
    """Entry point of the console script: the trial where it is at hand, otherwise where to get it.

    The trial brings a broker, a Redis and a model, which have no place in a light client.
    """
    if find_spec("dragoman_demo") is None:
        # To stderr, with status 1.
        raise SystemExit(
            "dragoman-demo: the trial and its model are part of the repository, not of this "
            "package; clone it and run: make demo"
        )
    import_module("dragoman_demo.__main__").main()

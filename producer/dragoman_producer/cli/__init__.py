"""Start of the `dragoman` command, which Ctrl-C terminates without a traceback."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the console script; the exit status follows contract section 7."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # not ignored, as under nohup
        # During imports a KeyboardInterrupt would print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dragoman_producer.cli.commands import dragoman

    signal.signal(signal.SIGINT, interrupt)
    sys.exit(dragoman())

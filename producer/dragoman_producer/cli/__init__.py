"""How does the `dragoman` command begin? Lightly, so that Ctrl-C ends it quietly from then on."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Entry point of the console script; its status is that of contract section 7."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # not ignored, as under nohup
        # While Python imports, a KeyboardInterrupt would end as a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dragoman_producer.cli.commands import dragoman

    signal.signal(signal.SIGINT, interrupt)
    sys.exit(dragoman())

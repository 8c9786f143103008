"""Entry point of the `dragoman-worker` command; each subcommand is a module of `cli`."""

from __future__ import annotations

import errno
import signal
import sys
from typing import Annotated

_interrupt = signal.getsignal(signal.SIGINT)
if _interrupt is signal.default_int_handler:  # not ignored, as under nohup
    # A KeyboardInterrupt during the imports below would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import typer

from dragoman_connections.terminal import print_to
from dragoman_connections.usage import UsageError, usage_message
from dragoman_worker.cli.bench import bench
from dragoman_worker.cli.check import check
from dragoman_worker.cli.options import fail, not_installed
from dragoman_worker.cli.profiles import profiles
from dragoman_worker.cli.run import fork_server, replica, run
from dragoman_worker.cli.tune import tune
from dragoman_worker.cli.why import why
from dragoman_worker.process.stderr_relay import open_standard_streams
from dragoman_worker.version import version

app = typer.Typer(
    name="dragoman-worker",
    help="Translate the jobs of a Kafka topic on this machine's GPU.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_to(sys.stdout, f"dragoman-worker {version()}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Translate the jobs of a Kafka topic on this machine's GPU."""


for command in (run, check, profiles, tune, bench, why):
    # The whole first line: Click would cut it where it has no `short_help`.
    app.command(short_help=(command.__doc__ or "").partition("\n")[0])(command)
for internal in (replica, fork_server):  # `run` starts these
    app.command(hidden=True)(internal)


def main() -> None:
    """Run the command that `sys.argv` names."""
    signal.signal(signal.SIGINT, _interrupt)
    open_standard_streams()
    try:
        raise SystemExit(app(standalone_mode=False))
    except UsageError as error:
        print_to(sys.stderr, usage_message(error, "dragoman-worker"))
        raise SystemExit(2) from None
    except ModuleNotFoundError as error:  # the client's installation lacks the worker's extras
        fail(2, not_installed(error))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        fail(1, f"{error.filename or 'standard output'}: {error.strerror or error}")
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()

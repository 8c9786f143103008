"""A container of a rendered pod on this machine: its user, rights, mounts and environment.

In a mount namespace of its own the whole file system is read-only but for the container's writable
volumes, as under `readOnlyRootFilesystem`. Needs Linux and root.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from support.processes.child_process import ChildProcess, command

_ROOT: Final = Path("/mnt")
_READ_ONLY: Final = "remount,ro,bind"
_KEPT: Final = tuple(
    Path(one).resolve() for one in (sys.base_prefix, sys.prefix, Path(__file__).parents[3])
)
"""What the worker is run from: the interpreter, the virtual environment and the checkout."""


class PodProcess(ChildProcess):
    """The container of `pod`, a pod's spec, with `environment` added to what the spec gives."""

    def __init__(self, pod: Mapping[str, Any], environment: Mapping[str, str], log: Path) -> None:
        script = "\n".join(
            ["set -eu", *_mounts(pod), f"exec {shlex.join(_command(pod, environment))}"]
        )
        super().__init__(["unshare", "--mount", "sh", "-c", script], log=log)


def _mounts(pod: Mapping[str, Any]) -> list[str]:
    """Return the commands that make the pod's file system at `_ROOT`."""
    [container] = pod["containers"]
    user = pod["securityContext"]["runAsUser"]
    writable = [one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")]
    lines = ["mount --make-rprivate /", f"mount --bind / {_ROOT}"]
    lines += [f"mount --rbind {one} {_ROOT}{one}" for one in ("/proc", "/dev")]
    # A path of the image that is not on this machine, and homes that another user may not enter.
    hidden = {str(Path(path).parent) for path in writable if not Path(path).is_dir()}
    hidden |= {str(home) for home in map(_home, _KEPT) if not home.stat().st_mode & 0o001}
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {_ROOT}{path}" for path in sorted(hidden)]
    for path in writable:
        lines += [f"mkdir -p {_ROOT}{path}"]
        lines += [f"mount -t tmpfs -o mode=771,uid={user},gid={user} tmpfs {_ROOT}{path}"]
    for kept in _KEPT:
        if any(kept.is_relative_to(path) for path in (*hidden, *writable)):
            lines += [f"mkdir -p {_ROOT}{kept}", f"mount --bind {kept} {_ROOT}{kept}"]
            lines += [f"mount -o {_READ_ONLY} {_ROOT}{kept}"]
    lines += [f"mount -o remount,ro {_ROOT}{path}" for path in sorted(hidden)]
    return [*lines, f"mount -o {_READ_ONLY} {_ROOT}"]


def _home(path: Path) -> Path:
    return Path(*path.parts[:2])


def _command(pod: Mapping[str, Any], environment: Mapping[str, str]) -> Sequence[str]:
    [container] = pod["containers"]
    context = pod["securityContext"]
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    variables = {"PATH": "/usr/bin:/bin", **given, **environment}
    return [
        *("chroot", str(_ROOT), "setpriv", "--clear-groups", "--no-new-privs"),
        *(f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}"),
        *("--bounding-set=-all", "--inh-caps=-all"),
        *("env", "-i", *(f"{name}={value}" for name, value in variables.items())),
        *command("dragoman-worker", *container["args"]),
    ]

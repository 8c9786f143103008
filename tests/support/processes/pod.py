"""A container of a rendered pod on this machine: its user, rights, mounts and environment.

In a mount namespace of its own the whole file system is read-only but for the container's writable
volumes, as under `readOnlyRootFilesystem`; these have the sizes of the spec. The container's memory
limit is that of a control group. Needs Linux and root.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from support.processes.child_process import ChildProcess, command
from support.processes.memory_limit import MemoryLimit, bytes_of

_ROOT: Final = Path("/mnt")
_READ_ONLY: Final = "remount,ro,bind"
_KEPT: Final = tuple(
    Path(one).resolve() for one in (sys.base_prefix, sys.prefix, Path(__file__).parents[3])
)
"""What the worker is run from: the interpreter, the virtual environment and the checkout."""


class PodProcess(ChildProcess):
    """The container of `pod`, a pod's spec, with `environment` added to what the spec gives.

    `memory` is an open limit, of the container's `resources.limits.memory`.
    """

    def __init__(
        self,
        pod: Mapping[str, Any],
        environment: Mapping[str, str],
        log: Path,
        *,
        memory: MemoryLimit,
    ) -> None:
        run = f"exec {shlex.join(_command(pod, environment))}"
        script = "\n".join(["set -eu", memory.join, *_mounts(pod), run])
        super().__init__(["unshare", "--mount", "sh", "-c", script], log=log)


def memory_limit_of(pod: Mapping[str, Any]) -> MemoryLimit:
    """Return the limit of the pod's only container."""
    [container] = pod["containers"]
    return MemoryLimit(container["resources"]["limits"]["memory"])


def _mounts(pod: Mapping[str, Any]) -> list[str]:
    """Return the commands that make the pod's file system at `_ROOT`."""
    [container] = pod["containers"]
    user = pod["securityContext"]["runAsUser"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    mounts = [(one["mountPath"], volumes[one["name"]], one) for one in container["volumeMounts"]]
    writable = {path: volume for path, volume, one in mounts if not one.get("readOnly")}
    given = {
        path: volume["hostPath"]["path"] for path, volume, one in mounts if one.get("readOnly")
    }
    lines = ["mount --make-rprivate /", f"mount --bind / {_ROOT}"]
    lines += [f"mount --rbind {one} {_ROOT}{one}" for one in ("/proc", "/sys", "/dev")]
    # A path of the image that is not on this machine, and homes that another user may not enter.
    paths = (*writable, *given)
    hidden = {str(Path(path).parent) for path in paths if not Path(path).is_dir()}
    hidden |= {str(home) for home in map(_home, _KEPT) if not home.stat().st_mode & 0o001}
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {_ROOT}{path}" for path in sorted(hidden)]
    for path, volume in writable.items():
        options = f"mode=771,uid={user},gid={user},size={bytes_of(volume['emptyDir']['sizeLimit'])}"
        lines += [f"mkdir -p {_ROOT}{path}", f"mount -t tmpfs -o {options} tmpfs {_ROOT}{path}"]
    for path, source in given.items():
        lines += [f"mkdir -p {_ROOT}{path}", *_read_only(source, path)]
    for kept in _KEPT:
        if any(kept.is_relative_to(path) for path in (*hidden, *writable)):
            lines += [f"mkdir -p {_ROOT}{kept}", *_read_only(kept, kept)]
    lines += _user_entry(user, next(iter(writable)))
    lines += [f"mount -o remount,ro {_ROOT}{path}" for path in sorted(hidden)]
    return [*lines, f"mount -o {_READ_ONLY} {_ROOT}"]


def _read_only(source: Path | str, path: Path | str) -> list[str]:
    return [f"mount --bind {source} {_ROOT}{path}", f"mount -o {_READ_ONLY} {_ROOT}{path}"]


def _user_entry(user: int, folder: str) -> list[str]:
    """Return the commands that name the user, as the image's Dockerfile does."""
    file = f"{_ROOT}{folder}/.passwd"
    entry = f"dragoman:x:{user}:{user}::/home/dragoman:/bin/sh"
    return [
        f"(cat /etc/passwd; echo {entry}) > {file}",
        f"mount --bind {file} {_ROOT}/etc/passwd",
    ]


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

"""How do the metrics pages of many replicas become one? Each family once, with all its samples."""

from __future__ import annotations

from collections.abc import Iterable


def merged(pages: Iterable[str]) -> str:
    """One page in Prometheus' text format, from pages whose samples differ in their labels.

    Text is joined with text, so that no figure is read and written again on the way.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for page in pages:
        name = ""
        for line in page.splitlines():
            if line.startswith("#"):
                _, kind, name, *_ = [*line.split(" ", 3), "", ""]
                head = heads.setdefault(name, [])
                if not any(known.startswith(f"# {kind} ") for known in head):
                    head.append(line)
            elif line:
                samples.setdefault(name, []).append(line)
    lines = (line for name in heads for line in (*heads[name], *samples.get(name, ())))
    return "".join(f"{line}\n" for line in lines)

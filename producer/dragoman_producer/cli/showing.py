"""What commands print of one job: its result, its status, or why there is neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    print_aside,
    print_json,
    print_line,
    print_note,
)

if TYPE_CHECKING:
    from dragoman_producer.cli.waiting import Found
    from dragoman_schemas.results import JobStatus, TranslationResult

UNKNOWN = "unknown"
_UNREADABLE = "unreadable"


def report(
    job_id: str, found: Found, *, as_json: bool, check: bool = False, with_id: bool = False
) -> int:
    """Print what is known of a job; return the exit status."""
    if found is None or isinstance(found, str):
        return _report_pending(job_id, found, as_json=as_json)
    if isinstance(found, Exception):
        return show_error(job_id, found, as_json=as_json)
    return show(found, as_json=as_json, check=check, with_id=with_id)


def show(
    found: TranslationResult, *, as_json: bool, check: bool = False, with_id: bool = False
) -> int:
    """Print one result: a line per item, or with `check` its verdicts; return the exit status."""
    from dragoman_producer.cli.verdicts import check_status, verdict_lines, warning_lines

    completed = found.status == "completed"
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    elif check:
        for line in verdict_lines(found):
            print_line(line)
    elif completed and found.translations:
        texts = [item.text or "" for item in found.translations]
        print_line(f"{found.job_id}\t{one_line(texts)}" if with_id else "\n".join(texts))
        for line in warning_lines(found):
            print_aside(line)
    if not as_json and not (completed and found.translations):
        error = found.error
        why = f"{error.code}: {error.message}" if error else "no text is stored"
        print_note(f"job {found.job_id}: {found.status}: {why}; --json prints the whole result")
    if not completed:
        return FAILURE
    return check_status(found) if check else SUCCESS


def print_status(job_id: str, found: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"job_id": job_id, "status": str(found)})
    else:
        print_line(f"{job_id}\t{found}")


def _report_pending(job_id: str, found: JobStatus | None, *, as_json: bool) -> int:
    known = found or UNKNOWN
    if as_json:
        print_json({"job_id": job_id, "status": str(known)})
    else:
        hint = "never submitted, or past its TTL" if found is None else "add --wait to wait for it"
        print_note(f"job {job_id} is {known}: {hint}")
    return PARTIAL


def show_error(job_id: str, error: Exception, *, as_json: bool) -> int:
    """Print why one job cannot be reported; return the exit status."""
    print_note(f"dragoman: {error}")
    if as_json:
        print_json({"job_id": job_id, "status": _UNREADABLE, "error": str(error)})
    return FAILURE


def one_line(texts: list[str]) -> str:
    r"""Return texts on one line, with line ends in and between them as `\n`."""
    return "\\n".join(texts).replace("\r\n", "\\n").replace("\n", "\\n").replace("\r", "\\n")

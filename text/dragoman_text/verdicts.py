"""What the gates judge, what they find, and the verdict that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dragoman_text.terms import Term

Verdict = Literal["ok", "warn", "fail"]

Severity = Literal["fail", "warn", "fixed"]
"""`fail`: the answer is asked for again, then `quality.on_fail` applies; `warn`: it is reported;
`fixed`: the gate has repaired the text."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer of the engine and all that the gates need to judge it against its source."""

    source: str
    target: str
    target_lang: str
    source_lang: str | None = None
    """Given or detected with confidence; None means unknown."""
    strict: bool = False
    protected: tuple[str, ...] = ()
    """Literals of `protect` and `do_not_translate` that occur in the source."""
    words: tuple[str, ...] = ()
    """Those of `do_not_translate`: they count only as whole words, "Go" not in "Good"."""
    terms: tuple[Term, ...] = ()
    """Glossary entries that occur in the source."""
    prompt: tuple[str, ...] = ()
    """What the model read besides the source: the frame's lines, the context, instructions."""
    max_chars: int | None = None
    joined: bool = False
    """Whether it is an item joined from pieces judged before: only `max_chars`, `paragraphs`,
    `structure`, `tags`, `language` and `script` judge it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one gate found in one answer. `detail` is one sentence, for `checks` and `warnings`."""

    gate: str
    severity: Severity
    detail: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The findings about one answer, and its text with what the gates repaired."""

    text: str
    findings: tuple[Finding, ...] = ()
    length_distance: float = 0.0
    """|log(length ratio / the median of the language pair)|: the smaller of two is better."""

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings for which the answer is asked for again."""
        return tuple(finding for finding in self.findings if finding.severity == "fail")

    @property
    def verdict(self) -> Verdict:
        """The verdict on the answer: the worst of its findings."""
        severities = {finding.severity for finding in self.findings}
        return "fail" if "fail" in severities else "warn" if "warn" in severities else "ok"

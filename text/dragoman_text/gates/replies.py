"""Answers that reply instead of translating: refusals, introductions, notes and offers.

No list of sentences: an answer is judged by what it says that the source does not (`reply_words`),
and by what it has and the source has not: a line, a sentence, a colon, a question, brackets. One
sign is common in human translations, the combinations below are not.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from dragoman_text.gates import languages, length, reply_words, sentence_ends
from dragoman_text.gates.defect import Defect
from dragoman_text.gates.prose import letters, weighed_letters
from dragoman_text.verdicts import Candidate

_HEAD: Final = 180
_TAIL: Final = 260
_SOURCE: Final = 2_000
"""Characters read of an answer's ends and of a source's."""

_COLON: Final = re.compile("[:：]|--|[–—]| - ")
_LEAD_END: Final = re.compile(
    r"[:：](?!//)\s?(?:[*_]{1,2})?|\n|(?<![.!?])[.!?](?![.!?])['\"”»]?(?=\s)|[。！？։።।၊။۔؟]"
)
_SENTENCE_START: Final = re.compile(r"(?<!\d)[.!?…։።।၊။۔؟]['\"”»)）]?\s+|[。！？]['\"”」』）]?\s*")
# Each run of opening marks is tried once: a row of underscores takes linear time.
_BRACKETS: Final = re.compile(
    r"(?<![(（\[［*_])[(（\[［*_]++\s*+(?![*_])[^()（）\[\]［］]{2,239}"
    r"[^()（）\[\]［］*_][)）\]］*_]++\.?\Z"
)
_HEADING: Final = re.compile(r"#{1,6}\s|[*_]{1,2}\w")
_OPENING_BRACKET: Final = re.compile("[(（\\[［]")
_QUESTION: Final = re.compile("[?？؟;՞]")
_EXCLAMATION: Final = re.compile("[!！]")
_QUOTE: Final = re.compile("[\"“„«「『‘'”]")

_LINE_ENDS: Final = tuple(".!?:;…。！？：；।؟۔።")
_LABEL: Final = re.compile(r"\W{0,4}[^\W\d][^:：\n]{0,29}[:：]")
_DENIES: Final = frozenset({"sorry", "cannot"})
_WEIGHTY: Final = frozenset({"sorry", "cannot", "translate", "ai"})
_ENDINGS: Final = frozenset({"offer", "note", "translate"})
_SURE: Final = frozenset({"sure"})
_MANY: Final = 4
_TALKS: Final = 3
_TASK: Final = frozenset({"text", "help", "translate"})
_BEHIND: Final = frozenset({"offer", "note", "translate", "help", "text"})
_SHORT_LEAD: Final = 45
_SHORT_SENTENCE: Final = 26
_SHORT_SOURCE: Final = 60
_LABEL_LENGTH: Final = 12
_BESIDE: Final = 6
"""Times as long as its last sentence: with longer texts their length says nothing about that."""
_WORD: Final = re.compile(r"\d+|\w{4,}")


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer is or has a reply to whoever asked for the translation."""
    reply = _Reply(candidate)
    if not reply.answer or reply.answer == reply.source:
        return None
    slight = None
    for part in (_instead, _before, _behind, _around):
        defect = part(reply)
        if defect is not None and not defect.slight:
            return defect
        slight = slight or defect
    return slight


@dataclass(frozen=True)
class _Reply:
    candidate: Candidate

    @cached_property
    def source(self) -> str:
        return self.candidate.source.strip()

    @cached_property
    def answer(self) -> str:
        return self.candidate.target.strip()

    @cached_property
    def lines(self) -> list[str]:
        return _lines(self.answer)

    @cached_property
    def added_lines(self) -> int:
        """Lines that the source does not have."""
        return len(self.lines) - len(_lines(self.source))

    @cached_property
    def more_sentences(self) -> bool:
        return sentence_ends.count(self.answer) > sentence_ends.count(self.source)

    def _of_source(self, *, broadly: bool) -> Counter[str]:
        source = self.source
        if len(source) > 2 * _SOURCE:
            source = f"{source[:_SOURCE]}\n{source[-_SOURCE:]}"
        return reply_words.said_by_source(source, self.candidate.source_lang, broadly=broadly)

    @cached_property
    def said_at_first(self) -> Counter[str]:
        """What the beginning says."""
        return self.said(self.answer[:_HEAD])

    def said(self, part: str) -> Counter[str]:
        """Return what a part of the answer says."""
        return reply_words.said(reply_words.normal(part), self.candidate.target_lang)

    def new(self, part: str, any_of: frozenset[str] = frozenset()) -> dict[str, int]:
        """Return what the part says, and the source does not at all, and with how many words.

        Nothing if it says little and none of `any_of`: then the source need not be read.
        """
        said = self.said(part)
        if len(said) < _MANY and any_of.isdisjoint(said):
            return {}
        known = set(self._of_source(broadly=True))
        if "sorry" in known:
            known |= _DENIES
        return {meaning: times for meaning, times in said.items() if meaning not in known}

    def more(self, part: str, any_of: frozenset[str] | None = None) -> Counter[str]:
        """Return what the part says with more words than the source; as `new`."""
        said = self.said(part)
        if not said or (any_of is not None and any_of.isdisjoint(said)):
            return Counter()
        return said - self._of_source(broadly=False)

    def gains(self, mark: re.Pattern[str], part: str) -> bool:
        """Return whether the part has such a mark, and the source none."""
        return mark.search(part) is not None and mark.search(self.source) is None


def _lines(text: str) -> list[str]:
    """Return the lines with text, each with the lines in which it goes on: wrapped prose is one."""
    found: list[str] = []
    goes_on = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and goes_on and (line[0] in " \t" or line[0].islower()):
            found[-1] += f" {stripped}"
        elif stripped:
            found.append(stripped)
        goes_on = bool(stripped) and not stripped.endswith(_LINE_ENDS)
    return found


def _instead(reply: _Reply) -> Defect | None:
    """Return a defect for a refusal, or a text about the task, at the beginning."""
    said = reply.said_at_first
    if len(said) < _MANY and _WEIGHTY.isdisjoint(said) and said["text"] + said["help"] < _TALKS:
        return None
    head = reply.answer[:_HEAD]
    new = reply.new(head, _WEIGHTY | _TASK)
    denies, task = new.keys() & _DENIES, new.keys() & _TASK
    refuses = len(denies) > 1 or new.get("cannot", 0) > 1
    if (denies and (task or "ai" in new)) or refuses or ("ai" in new and task):
        about_it = bool(task) or "ai" in new
        sure = about_it and (len(new) > 2 or sum(new.values()) > 3 or "sorry" in new)
        sure = sure or _unlike(reply)
        return Defect("The answer refuses to translate.", slight=not sure)
    if denies and _is_short_english(reply):
        return Defect("The answer refuses to translate.")
    # One such word alone also means to transfer, to turn or to fold: to translate it is right.
    if "translate" in new and (len(new) > 1 or new["translate"] > 1 or _odd(reply, head)):
        return Defect("The answer speaks about the translation.")
    if len(new) >= _MANY or new.get("text", 0) + new.get("help", 0) >= _TALKS:
        return Defect("The answer speaks to whoever asked for the translation.")
    return None


def _is_short_english(reply: _Reply) -> bool:
    """Return whether "I won't do that." is too short for a translation; English does not shrink."""
    if languages.base(reply.candidate.target_lang) != "en" or len(reply.source) < _SHORT_SOURCE:
        return False
    return length.ratio(reply.candidate)[0] < 0.7


def _unlike(reply: _Reply) -> bool:
    """Return whether the answer's length says little, or that it is no translation."""
    return len(reply.source) < _SHORT_SOURCE or not 0.7 < length.ratio(reply.candidate)[0] < 1.4


def _odd(reply: _Reply, part: str) -> bool:
    """Return whether the answer has another form than the source."""
    if reply.added_lines > 0 or any(
        reply.gains(mark, part) for mark in (_COLON, _QUESTION, _OPENING_BRACKET)
    ):
        return True
    return _long(reply) or (
        len(reply.source) > _SHORT_SOURCE and length.ratio(reply.candidate)[0] < 0.5
    )


def _long(reply: _Reply) -> bool:
    return len(reply.answer) > _SHORT_LEAD and length.ratio(reply.candidate)[0] > 1.6


def _before(reply: _Reply) -> Defect | None:
    """Return a defect for an introduction in front of the translation."""
    answer = reply.answer
    if _has_heading(reply):
        return Defect("The answer begins with a heading.")
    end = _LEAD_END.search(answer[:_HEAD])
    if end is None or not any(map(str.isalnum, answer[end.end() :])):
        return None
    lead, mark = answer[: end.end()].strip(), end[0][0]
    if mark in ":：":
        return _introduction(reply, lead, answer[end.end() :].lstrip())
    if mark == "\n":
        found = reply.added_lines > 0 and _ends(reply, lead) and bool(reply.more(lead))
    else:
        found = _agrees(reply, lead, mark)
    return Defect("The answer begins with an introduction.") if found else None


def _ends(reply: _Reply, lead: str) -> bool:
    """Return whether the first line ends there; otherwise it may be prose that was wrapped."""
    return lead.endswith(_LINE_ENDS) or ("\n" not in reply.source and len(lead) <= _SHORT_LEAD)


def _has_heading(reply: _Reply) -> bool:
    """Return whether a heading or emphasis that speaks about the translation begins the answer."""
    if not _HEADING.match(reply.answer) or _HEADING.match(reply.source):
        return False
    return "translate" in reply.more(reply.answer[:_SHORT_LEAD])


def _introduction(reply: _Reply, lead: str, rest: str) -> Defect | None:
    """Return a defect for a lead with a colon that the source does not have."""
    more_colons = len(_COLON.findall(reply.answer)) > len(_COLON.findall(reply.source))
    if not more_colons or 4 * weighed_letters(rest) < letters(reply.source):
        return None
    introduction = Defect("The answer begins with an introduction.")
    more = reply.more(lead)
    if "translate" in more or _is_latin_label(reply, lead):
        return introduction
    if not _is_plain(reply, lead, rest):
        return None
    if len(more) > 1 or "here" in reply.more(_bytes(lead, _LABEL_LENGTH)):
        return introduction
    apart = more and _is_whole(reply, rest) and not _says(reply.source, lead)
    return introduction if apart else None


def _is_plain(reply: _Reply, lead: str, rest: str) -> bool:
    """Return whether the lead is short, without brackets, and introduces no quotation."""
    if len(lead) > _SHORT_LEAD or "(" in lead:
        return False
    quotes = _QUOTE.match(rest) is not None and _QUOTE.search(reply.source) is not None
    return not quotes or len(lead) <= _LABEL_LENGTH


def _is_whole(reply: _Reply, part: str) -> bool:
    """Return whether the part begins as a text does, and has the length of the whole."""
    if part[0].islower() or _QUOTE.match(part):
        return False
    return 0.8 < length.ratio(replace(reply.candidate, target=part))[0] < 1.3


def _says(source: str, lead: str) -> bool:
    return any(word in source for word in _WORD.findall(lead))


def _is_latin_label(reply: _Reply, lead: str) -> bool:
    """Return whether a label of Latin letters stands before an answer in another script."""
    if not lead.isascii() or languages.script(reply.candidate.target_lang) == "Latn":
        return False
    return len(lead) <= _SHORT_LEAD and lead[:-1].strip() not in reply.source and lead[0].isalpha()


def _bytes(text: str, most: int) -> str:
    """Return the beginning of the text, shorter where a letter says more."""
    return text.encode()[: 2 * most if text.isascii() is False else most].decode(errors="ignore")


def _agrees(reply: _Reply, lead: str, mark: str) -> bool:
    """Return whether a short first sentence is a "Sure!" that the source does not have."""
    if len(lead.encode()) > _SHORT_SENTENCE or _EXCLAMATION.search(reply.source[:_SHORT_LEAD]):
        return False
    if mark in "!！":
        return "sure" in reply.more(lead)
    return reply.more_sentences and "sure" in reply.new(lead, _SURE)


def _behind(reply: _Reply) -> Defect | None:
    """Return a defect for a note, an offer or a question behind the translation."""
    if len(reply.answer) <= _HEAD and _ENDINGS.isdisjoint(reply.said_at_first):
        return None
    last = _last_part(reply)
    more = reply.more(last, _ENDINGS) if last else None
    if not last or not more:
        return None
    asks = reply.gains(_QUESTION, last) or reply.gains(_EXCLAMATION, last)
    labeled = _LABEL.match(last) is not None
    words = sum(more[meaning] for meaning in _BEHIND)
    needed = 2 if reply.added_lines > 0 or reply.more_sentences else 3
    offers = "offer" in more and (asks or words >= needed)
    notes = "note" in more and (labeled or words >= needed)
    ending = Defect("The answer ends with a note or an offer.")
    if offers or notes or ("translate" in more and needed < 3):
        return ending
    rest = reply.answer.removesuffix(last).rstrip()
    if needed < 3 and rest and _BESIDE * len(last) > len(rest) and _is_whole(reply, rest):
        return replace(ending, slight=True)
    return None


def _last_part(reply: _Reply) -> str | None:
    """Return the last line or sentence, or what is in brackets there, if the source has less."""
    if reply.added_lines > 0:
        return reply.lines[-1][-_TAIL:]
    tail = reply.answer[-_TAIL:]
    brackets = _BRACKETS.search(tail)
    if brackets is not None and _OPENING_BRACKET.search(reply.source) is None:
        return brackets[0]
    starts = [each.end() for each in _SENTENCE_START.finditer(tail[:-1])]
    written = sentence_ends.are_written(reply.candidate.target_lang)
    if written and not starts and not reply.more_sentences:
        return None
    last = tail[starts[-1] if starts else len(tail) // 2 :]
    return last if 2 * len(last) < len(reply.answer) + 2 or _long(reply) else None


def _around(reply: _Reply) -> Defect | None:
    """Return a defect for added lines: an introduction, a note in brackets, a paragraph."""
    if reply.added_lines <= 0 or "\n" in reply.source:
        return None
    first, last = reply.lines[0], reply.lines[-1]
    if first.endswith((":", "：")) and not _COLON.search(reply.source):
        return Defect("The answer begins with an introduction.")
    if _BRACKETS.fullmatch(last) and not _BRACKETS.search(reply.source):
        return Defect("The answer ends with a note.")
    if "\n\n" in reply.answer:
        return Defect("The answer has a paragraph that the source does not have.")
    return Defect("The answer has a line that the source does not have.", slight=True)

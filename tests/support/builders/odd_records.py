"""Records that are valid but odd, or invalid, each with its required outcome.

The table is for every test that publishes odd records: unit tests of the core, integration tests
and storms. Each entry makes its record anew, so that a table of large values costs no memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

COMPLETED: Final = "completed"
EXPIRED: Final = "expired"
FAILED: Final = "failed:"
"""The job ends as ``failed`` under its own id, and the code follows; a dead letter is written."""
DEAD_LETTER: Final = "dead-letter:"
"""The record has no readable id: a dead letter of the code that follows is all there is."""

INVALID: Final = FAILED + "invalid_job"
UNREADABLE: Final = DEAD_LETTER + "invalid_job"
MOST_TEXT: Final = 128 * 1024
MOST_CONTEXT: Final = 8 * 1024


@dataclass(frozen=True)
class OddRecord:
    """One record as a producer would publish it, and the end it must come to."""

    value: bytes | None
    expect: str
    """``completed``, ``expired``, ``failed:CODE`` or ``dead-letter:CODE``."""
    key: bytes | None = None
    headers: list[tuple[str | bytes, bytes | None]] = field(default_factory=list)
    timestamp_ms: int | None = None
    compression: str | None = None
    job_id: str | None = None
    """None where the record has no readable id."""


ODD_RECORDS: Final[dict[str, Callable[[], OddRecord]]] = {}
"""Every kind by its name. The id of a kind's job is ``odd-NAME``."""

_Value = Callable[[str], bytes | None]


def kind(expect: str) -> Callable[[_Value], _Value]:
    """Register a function that makes the value of a record from the job id it is to have."""

    def register(make: _Value) -> _Value:
        name = make.__name__.removeprefix("_")

        def record() -> OddRecord:
            job_id = f"odd-{name}"
            unreadable = expect.startswith(DEAD_LETTER)
            return OddRecord(
                make(job_id), expect, job_id.encode(), job_id=None if unreadable else job_id
            )

        ODD_RECORDS[name] = record
        return make

    return register


def job(job_id: str, text: Any = "A text.", **fields: Any) -> bytes:
    """Return the value of a small job; `...` leaves a field out."""
    members = {"job_id": job_id, "text": text, "target_lang": "de", **fields}
    given = {name: value for name, value in members.items() if value is not ...}
    return json.dumps(given, ensure_ascii=False).encode()


def raw(job_id: str, members: str) -> bytes:
    """Return a valid small job with further members given as JSON."""
    return f'{{"job_id":"{job_id}","text":"A text.","target_lang":"de",{members}}}'.encode()


def repeated(pattern: str, size: int = MOST_TEXT) -> str:
    """As many whole repetitions of a pattern as `size` bytes of UTF-8 hold."""
    return pattern * (size // len(pattern.encode()))


def many(entry: str, size: int = 950_000) -> str:
    """Return the entries of a JSON list or object of about `size` bytes."""
    return ",".join([entry] * (size // (len(entry) + 1)))


def members(value: str, count: int, prefix: str = "") -> str:
    """`count` members with names of their own."""
    return ",".join(f'"{prefix}{number:x}":{value}' for number in range(count))


# --- legal: texts that are hard to detect, split, search or tokenise ------------------------------


@kind(COMPLETED)
def _mail_like_items(job_id: str) -> bytes:
    """Return items in which a pattern for mail addresses is tried at every character."""
    return job(job_id, ["a" + "@" * 1_199] * 100)


@kind(COMPLETED)
def _one_long_mail_like_text(job_id: str) -> bytes:
    return job(job_id, repeated("a@"))


@kind(COMPLETED)
def _one_word_of_128_kib(job_id: str) -> bytes:
    return job(job_id, repeated("a"))


@kind(COMPLETED)
def _han_without_a_full_stop(job_id: str) -> bytes:
    return job(job_id, repeated("漢"))


@kind(COMPLETED)
def _thai_without_spaces(job_id: str) -> bytes:
    return job(job_id, repeated("ภาษาไทย"), source_lang="th")


@kind(COMPLETED)
def _short_sentences(job_id: str) -> bytes:
    return job(job_id, repeated("No. "))


@kind(COMPLETED)
def _abbreviations(job_id: str) -> bytes:
    return job(job_id, repeated("e.g. Dr. U.S.A. "))


@kind(COMPLETED)
def _combining_marks(job_id: str) -> bytes:
    return job(job_id, "e" + repeated("\u0301", MOST_TEXT - 1))


@kind(COMPLETED)
def _marks_in_reverse_order(job_id: str) -> bytes:
    """Return combining marks in reverse order, which normalisation must sort."""
    return job(job_id, "e" + repeated("\u0315\u0300\u0320", MOST_TEXT - 1))


@kind(COMPLETED)
def _zero_width_characters(job_id: str) -> bytes:
    return job(job_id, "a" + repeated("\u200b\u200d\ufeff", MOST_TEXT - 1))


@kind(COMPLETED)
def _emoji_sequences(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("👩\u200d👩\u200d👧\u200d👦", MOST_TEXT - 2))


@kind(COMPLETED)
def _right_to_left_overrides(job_id: str) -> bytes:
    return job(job_id, repeated("\u202ea\u202c"))


@kind(COMPLETED)
def _blanks_alone(job_id: str) -> bytes:
    return job(job_id, repeated(" \n\t"))


@kind(COMPLETED)
def _blanks_before_a_letter(job_id: str) -> bytes:
    return job(job_id, repeated(" ", MOST_TEXT - 1) + "a")


@kind(COMPLETED)
def _line_ends(job_id: str) -> bytes:
    return job(job_id, repeated("a\n"))


@kind(COMPLETED)
def _null_characters(job_id: str) -> bytes:
    return job(job_id, repeated("\0a"))


@kind(COMPLETED)
def _opened_tags(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("<a ", MOST_TEXT - 2))


@kind(COMPLETED)
def _opened_comments(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("<!--", MOST_TEXT - 2))


@kind(COMPLETED)
def _opened_braces(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("{", MOST_TEXT - 2))


@kind(COMPLETED)
def _opened_mustaches(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("{{{a", MOST_TEXT - 2))


@kind(COMPLETED)
def _opened_code(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("``a", MOST_TEXT - 2))


@kind(COMPLETED)
def _percent_signs(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("%(a", MOST_TEXT - 2))


@kind(COMPLETED)
def _link_starts(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("http://www.", MOST_TEXT - 2))


@kind(COMPLETED)
def _link_of_brackets(job_id: str) -> bytes:
    return job(job_id, "a http://" + repeated(")", MOST_TEXT - 9))


@kind(COMPLETED)
def _ampersands(job_id: str) -> bytes:
    return job(job_id, "a " + repeated("&#x", MOST_TEXT - 2))


@kind(COMPLETED)
def _thoughts(job_id: str) -> bytes:
    return job(job_id, repeated("<think>"))


@kind(COMPLETED)
def _control_tokens(job_id: str) -> bytes:
    return job(job_id, repeated("<|im_start|>"))


@kind(COMPLETED)
def _escaped_surrogate_pairs(job_id: str) -> bytes:
    text = r"\ud83d\ude00" * (MOST_TEXT // 4 - 1)
    return f'{{"job_id":"{job_id}","text":"a{text}","target_lang":"de"}}'.encode()


# --- legal: fields that multiply ------------------------------------------------------------------


@kind(COMPLETED)
def _empty_items(job_id: str) -> bytes:
    return job(job_id, [""] * 512)


@kind(COMPLETED)
def _short_items_with_a_long_context(job_id: str) -> bytes:
    return job(job_id, ["Hello."] * 128, context=repeated("All of it. ", MOST_CONTEXT))


@kind(COMPLETED)
def _every_item_with_a_long_context(job_id: str) -> bytes:
    context = repeated("Its own. ", 1_700)
    return job(job_id, [{"text": "Hello.", "context": context}] * 512)


@kind(COMPLETED)
def _terms_that_occur_everywhere(job_id: str) -> bytes:
    """Each term occurs inside one word at every place, and never as a word of its own."""
    words = ["a" * length for length in range(1, 201)]
    return job(
        job_id,
        {"text": repeated("a", 50_000), "protect": ["a" * length for length in range(1, 200)]},
        glossary=dict.fromkeys(words, "b"),
        do_not_translate=words,
        source_lang="en",
    )


@kind(COMPLETED)
def _terms_for_many_items(job_id: str) -> bytes:
    words = [f"term {number:03d}" for number in range(200)]
    return job(
        job_id,
        ["a " + " ".join(words[start : start + 3]) for start in range(170)] * 3,
        glossary=dict.fromkeys(words, "b"),
        do_not_translate=words,
    )


@kind(COMPLETED)
def _terms_of_capital_sharp_s(job_id: str) -> bytes:
    """Letters that become longer when their case is folded."""
    words = [repeated("ẞ", 3 * length) for length in range(1, 200)]
    return job(job_id, repeated("ẞ"), glossary=dict.fromkeys(words, "b"), source_lang="de")


@kind(COMPLETED)
def _protected_overlaps(job_id: str) -> bytes:
    protect = [repeated("ab", 2 * length) for length in range(1, 513)]
    return job(job_id, {"text": repeated("ab"), "protect": protect}, source_lang="en")


@kind(COMPLETED)
def _nulls_for_every_field(job_id: str) -> bytes:
    names = ("source_lang", "context", "glossary", "profile", "sampling", "deadline", "metadata")
    return job(job_id, **dict.fromkeys(names))


@kind(COMPLETED)
def _a_tag_of_many_parts(job_id: str) -> bytes:
    return job(job_id, target_lang="zh_hant_hk", source_lang="EN-latn-us-x-twain")


@kind(COMPLETED)
def _a_deadline_with_a_long_fraction(job_id: str) -> bytes:
    return job(job_id, deadline=f"2099-01-31T12:00:00.{'9' * 900_000}Z")


@kind(COMPLETED)
def _a_deadline_in_a_leap_second(job_id: str) -> bytes:
    return job(job_id, deadline="2098-12-31T23:59:60Z")


@kind(EXPIRED)
def _a_deadline_long_ago(job_id: str) -> bytes:
    return job(job_id, deadline="0001-01-01T00:00:00Z")


@kind(COMPLETED)
def _a_number_with_many_digits(job_id: str) -> bytes:
    return raw(job_id, f'"ttl_s":86400.{"0" * 900_000}')


@kind(COMPLETED)
def _blanks_around_the_json(job_id: str) -> bytes:
    return b" " * 400_000 + job(job_id) + b"\n" * 400_000


@kind(COMPLETED)
def _metadata_of_many_letters(job_id: str) -> bytes:
    return job(job_id, metadata={f"ключ {number}": "ы" * 40 for number in range(64)})


# --- broken rules ---------------------------------------------------------------------------------


@kind(INVALID)
def _small_objects(job_id: str) -> bytes:
    return raw(job_id, f'"m":[{many("{}")}]')


@kind(INVALID)
def _fractions(job_id: str) -> bytes:
    return raw(job_id, f'"m":[{many("1.5")}]')


@kind(INVALID)
def _small_numbers(job_id: str) -> bytes:
    return raw(job_id, f'"m":[{many("1e-300")}]')


@kind(INVALID)
def _nested_nulls(job_id: str) -> bytes:
    return raw(job_id, f'"m":[{many("[null]")}]')


@kind(INVALID)
def _names_in_other_scripts(job_id: str) -> bytes:
    return raw(job_id, f'"m":{{{members("1", 70_000, "é")}}}')


@kind(INVALID)
def _unknown_fields(job_id: str) -> bytes:
    return raw(job_id, members("1", 90_000, "f"))


@kind(INVALID)
def _unknown_field_with_a_long_name(job_id: str) -> bytes:
    return raw(job_id, f'"{"x" * 900_000}":1')


@kind(INVALID)
def _unknown_fields_of_sampling(job_id: str) -> bytes:
    return raw(job_id, f'"sampling":{{{members("1", 80_000)}}}')


@kind(INVALID)
def _unknown_fields_of_every_item(job_id: str) -> bytes:
    item = f'{{"text":"a",{members("1", 180)}}}'
    return f'{{"job_id":"{job_id}","text":[{",".join([item] * 500)}],"target_lang":"de"}}'.encode()


@kind(INVALID)
def _wrong_entries_of_protect(job_id: str) -> bytes:
    item = f'{{"text":"a","protect":[{many("1", 524_288)}]}}'
    return f'{{"job_id":"{job_id}","text":{item},"target_lang":"de"}}'.encode()


@kind(INVALID)
def _wrong_entries_of_protect_in_every_item(job_id: str) -> bytes:
    return job(job_id, [{"text": "a", "protect": [1] * 500}] * 500)


@kind(INVALID)
def _items_of_many_wrong_forms(job_id: str) -> bytes:
    return f'{{"job_id":"{job_id}","text":[{many("1")}],"target_lang":"de"}}'.encode()


@kind(INVALID)
def _items_of_many_wrong_objects(job_id: str) -> bytes:
    text = many('{"x":1}')
    return f'{{"job_id":"{job_id}","text":[{text}],"target_lang":"de"}}'.encode()


@kind(INVALID)
def _too_many_items(job_id: str) -> bytes:
    return job(job_id, ["a"] * 513)


@kind(INVALID)
def _too_much_text(job_id: str) -> bytes:
    return job(job_id, repeated("a") + "a")


@kind(INVALID)
def _too_much_context(job_id: str) -> bytes:
    return job(job_id, context="é" * (MOST_CONTEXT // 2) + "a")


@kind(INVALID)
def _a_glossary_of_many_terms(job_id: str) -> bytes:
    return raw(job_id, f'"glossary":{{{members("1", 90_000)}}}')


@kind(INVALID)
def _many_terms_not_to_be_translated(job_id: str) -> bytes:
    return raw(job_id, f'"do_not_translate":[{many("1")}]')


@kind(INVALID)
def _many_instructions(job_id: str) -> bytes:
    return raw(job_id, f'"instructions":[{many("1")}]')


@kind(INVALID)
def _metadata_of_many_entries(job_id: str) -> bytes:
    return raw(job_id, f'"metadata":{{{members("1", 80_000)}}}')


@kind(INVALID)
def _metadata_of_a_megabyte(job_id: str) -> bytes:
    return job(job_id, metadata={"a": "x" * 900_000})


@kind(FAILED + "unsupported_language")
def _a_tag_of_100_kb(job_id: str) -> bytes:
    return job(job_id, target_lang="de-" + "a" * 100_000)


@kind(FAILED + "unsupported_language")
def _a_tag_of_marks(job_id: str) -> bytes:
    return job(job_id, target_lang="d\u0301e\0-\u202e")


@kind(INVALID)
def _a_record_over_the_limit(job_id: str) -> bytes:
    return job(job_id, context="a" * 1_000_000)


@kind(INVALID)
def _escaped_null_characters(job_id: str) -> bytes:
    text = r"\u0000" * 150_000
    return f'{{"job_id":"{job_id}","text":"{text}","target_lang":"de"}}'.encode()


@kind(INVALID)
def _an_index_beyond_the_total(job_id: str) -> bytes:
    return job(job_id, document={"document_id": "d", "index": 5, "total": 5})


@kind(INVALID)
def _a_schema_that_is_no_number(job_id: str) -> bytes:
    return job(job_id, schema=[])


@kind(FAILED + "unsupported_schema")
def _a_schema_of_300_digits(job_id: str) -> bytes:
    return raw(job_id, '"schema":1e300')


@kind(FAILED + "unknown_profile")
def _an_unknown_profile(job_id: str) -> bytes:
    return job(job_id, profile="\u202e" * 40)


@kind(FAILED + "unknown_glossary")
def _an_unknown_glossary(job_id: str) -> bytes:
    return job(job_id, glossary_id="none")


# --- no readable id -------------------------------------------------------------------------------


@kind(UNREADABLE)
def _no_value(job_id: str) -> None:
    del job_id


@kind(UNREADABLE)
def _empty_value(job_id: str) -> bytes:
    del job_id
    return b""


@kind(UNREADABLE)
def _not_utf_8(job_id: str) -> bytes:
    return job(job_id)[:-1] + b"\xff}"


@kind(UNREADABLE)
def _utf_16(job_id: str) -> bytes:
    return job(job_id).decode().encode("utf-16")


@kind(UNREADABLE)
def _a_byte_order_mark(job_id: str) -> bytes:
    return b"\xef\xbb\xbf" + job(job_id)


@kind(UNREADABLE)
def _binary(job_id: str) -> bytes:
    del job_id
    return bytes(range(256)) * 3_900


@kind(UNREADABLE)
def _a_list(job_id: str) -> bytes:
    return b"[" + job(job_id) + b"]"


@kind(UNREADABLE)
def _half_an_object(job_id: str) -> bytes:
    return job(job_id, "a" * 900_000)[:-20]


@kind(UNREADABLE)
def _nested_lists(job_id: str) -> bytes:
    return raw(job_id, f'"m":{"[" * 490_000}{"]" * 490_000}')


@kind(UNREADABLE)
def _nested_objects(job_id: str) -> bytes:
    return raw(job_id, '"m":' + '{"a":' * 150_000 + "1" + "}" * 150_000)


@kind(UNREADABLE)
def _an_integer_of_a_megabyte(job_id: str) -> bytes:
    return raw(job_id, f'"ttl_s":{"9" * 900_000}')


@kind(UNREADABLE)
def _an_infinite_number(job_id: str) -> bytes:
    return raw(job_id, '"ttl_s":1e400')


@kind(UNREADABLE)
def _not_a_number(job_id: str) -> bytes:
    return raw(job_id, '"ttl_s":NaN')


@kind(UNREADABLE)
def _a_name_twice(job_id: str) -> bytes:
    return raw(job_id, many('"a":1'))


@kind(UNREADABLE)
def _a_lone_surrogate(job_id: str) -> bytes:
    return raw(job_id, r'"context":"\udfff"')


@kind(UNREADABLE)
def _an_id_of_129_characters(job_id: str) -> bytes:
    return job(job_id.ljust(129, "x"))


@kind(UNREADABLE)
def _an_id_with_a_line_end(job_id: str) -> bytes:
    return job(job_id + "\n")

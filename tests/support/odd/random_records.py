"""Random records: bytes, mutated jobs, jobs with odd values, heavy legal jobs, odd Kafka fields."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from typing import Any, Final

from dragoman_schemas.wire import UnreadableRecord, open_record
from support.builders.odd_records import OddRecord
from support.odd.cases import ANY, Case

_MOST: Final = 1_000_000
_MOST_TEXT: Final = 128 * 1024
_CODECS: Final = (None, None, "gzip", "snappy", "lz4", "zstd")
_ALPHABETS: Final = (
    "abc def. ", "a@", "@.", "A", "ß", "İi", "\u0301a", "\u200b", "\u202e", "\0", "\n\r\x85 ",
    "{}", "<>&;", "%s%(x)s", "[](){}", "漢字。", "한국어 ", "ก็",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001d518", "\ufffe", "'\"\\",
    "http://a.b/", "1,234.5 ", "-\u2013\u2014", "\u2026?!.",
)  # fmt: skip
_SPELLED: Final = (
    "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "-0", "-0.0", "1e-400", "9007199254740993",
    "9" * 400, "0." + "3" * 3_000, '"\\ud800"', '"\\udc00x"', '"\\u0000"', '"\\ud83d\\ude00"',
    "true", "false", "null", '""', "[]", "{}", "[null]", '[""]', "{\"\": null}", "01", "+1", ".5",
    "'x'", '"unended', "[1,]", '{"a":1,"a":2}', "\"\t\"", "//x", "[" * 300 + "]" * 300,
    "[" * 100_000, '{"a":' * 2_000 + "1" + "}" * 2_000,
)  # fmt: skip
_STAMPS: Final = (0, -1, -5_000, 2**63 - 1, -(2**62), 253_402_300_800_000)


class Spelled(str):
    """JSON that is written unchanged, valid or not."""

    __slots__ = ()


class Draws:
    """An endless sequence of records of one seed; `cases(n)` draws those of a round."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"fuzz {seed}")
        self._run = f"{seed}-{time.time_ns() // 1_000_000:x}"
        self._count = 0
        self._makers: list[tuple[int, Callable[[str], bytes | None]]] = [
            (3, self._bytes),
            (5, self._mutated),
            (10, self._odd_values),
            (8, self._heavy),
            (1, lambda job_id: None),
        ]

    def cases(self, count: int) -> list[Case]:
        """Draw batches of one to three records each."""
        return [self._case() for _ in range(count)]

    def _case(self) -> Case:
        chosen = self._random
        records = [self._record() for _ in range(chosen.choice((1, 1, 1, 2, 3)))]
        return Case(records, codec=chosen.choice(_CODECS))

    def _record(self) -> OddRecord:
        self._count += 1
        job_id = f"fuzz-{self._run}-{self._count}"
        weights = [weight for weight, _ in self._makers]
        ((_, make),) = self._random.choices(self._makers, weights)
        value = make(job_id)
        return OddRecord(
            value if value is None else value[:_MOST],
            ANY,
            key=self._key(job_id),
            headers=self._headers(),
            timestamp_ms=self._stamp(),
            job_id=readable_id(value if value is None else value[:_MOST]),
        )

    # --- Kafka's fields ---------------------------------------------------------------------------

    def _key(self, job_id: str) -> bytes | None:
        keys = (job_id.encode(), job_id.encode(), None, b"", self._some_bytes(2_000))
        return self._random.choice(keys)

    def _stamp(self) -> int | None:
        if self._random.random() < 0.6:
            return None
        return self._random.choice((*_STAMPS, self._random.randrange(-(2**62), 2**62)))

    def _headers(self) -> list[tuple[str | bytes, bytes | None]]:
        if self._random.random() < 0.6:
            return []
        names: tuple[str | bytes, ...] = (
            "traceparent", "dragoman-replay", "x-job-id", "x-original-offset", "", b"\xff\xfe",
            "n" * self._size(3_000), self._some_bytes(50),
        )  # fmt: skip
        values = (None, b"", b"1", b"2", b"-1", b"9" * 30, self._some_bytes(3_000))
        count = self._random.choice((1, 1, 2, 5, 200))
        return [(self._random.choice(names), self._random.choice(values)) for _ in range(count)]

    # --- values -----------------------------------------------------------------------------------

    def _bytes(self, job_id: str) -> bytes:
        if self._random.random() < 0.5:
            return self._some_bytes(_MOST)
        pattern = self._random.choice((b"[", b"{", b'{"a":', b'"', b"\\u00", b"\xff", b" ", b"0"))
        start = b'{"job_id":"%s","text":' % job_id.encode()
        return self._random.choice((b"", start)) + pattern * self._size(_MOST // len(pattern))

    def _mutated(self, job_id: str) -> bytes:
        value = bytearray(spelled(self._job(job_id)).encode(errors="surrogatepass"))
        for _ in range(self._random.choice((1, 1, 2, 4, 16))):
            at = self._random.randrange(len(value) + 1)
            end = min(len(value), at + self._size(64))
            match self._random.randrange(5):
                case 0:
                    del value[at:end]
                case 1:
                    value[at:at] = self._some_bytes(64)
                case 2:
                    value[at:at] = value[at:end] * self._size(500)
                case 3:
                    del value[at:]
                case _:
                    value[at:end] = bytes(
                        byte ^ self._random.randrange(256) for byte in value[at:end]
                    )
            value = value[:_MOST] or bytearray(b"{")
        return bytes(value)

    def _odd_values(self, job_id: str) -> bytes:
        fields = self._job(job_id)
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            name = self._random.choice((*fields, "an unknown field", "sampling", "document"))
            inside = fields.get(name)
            if isinstance(inside, dict) and inside and self._random.random() < 0.6:
                fields[name] = inside | {self._random.choice(list(inside)): self._odd()}
            elif isinstance(inside, list) and inside and self._random.random() < 0.6:
                fields[name] = [*inside, self._odd()] * self._size(100)
            else:
                fields[name] = self._odd()
        return spelled(fields).encode(errors="surrogatepass")

    def _heavy(self, job_id: str) -> bytes:
        """Return a job that is valid within the size limits and expensive to plan."""
        items = self._size(512)
        text = self._text(_MOST_TEXT // items)
        terms = [self._text(60) or "x" for _ in range(self._size(200))]
        words = [word[:200] for word in text.split()[:200]] or ["x"]
        fields: dict[str, Any] = {
            "job_id": job_id,
            "target_lang": self._random.choice(("de", "fr", "zh-Hans", "ar", "pt_BR")),
            "text": text if items == 1 else [text] * items,
        }
        maybe: dict[str, Any] = {
            "source_lang": "en",
            "context": self._text(8_192),
            "glossary": dict.fromkeys([*terms, *words][:200], "Wort"),
            "do_not_translate": [*words, *terms][:200],
            "instructions": [self._text(300)] * self._size(10),
            "metadata": {"m": self._text(1_000)},
        }
        fields |= {name: value for name, value in maybe.items() if self._random.random() < 0.4}
        if self._random.random() < 0.3:
            protect = [word for word in words if word in text][:100]
            fields["text"] = [{"text": text, "protect": protect}] * items
        return json.dumps(fields, ensure_ascii=self._random.random() < 0.5).encode(
            errors="surrogatepass"
        )

    def _job(self, job_id: str) -> dict[str, Any]:
        """Return a valid job with nearly every field."""
        fields: dict[str, Any] = {
            "job_id": job_id,
            "schema": 1,
            "text": self._random.choice(
                ("A text.", ["One.", "Two."], [{"text": "Three.", "id": "x", "protect": ["T"]}])
            ),
            "target_lang": "de",
            "source_lang": "en",
            "context": "A context.",
            "glossary": {"text": "Text"},
            "do_not_translate": ["One"],
            "formality": "default",
            "instructions": ["Be brief."],
            "sampling": {"temperature": 0.1, "max_tokens": 100, "seed": 1},
            "quality": {"level": "off", "max_attempts": 1, "on_fail": "fail"},
            "deadline": "2099-01-01T00:00:00Z",
            "ttl_s": 3_600,
            "document": {"document_id": "fuzz", "index": 1, "total": 10},
            "metadata": {"a": "b"},
        }
        needed = {"job_id", "text", "target_lang"}
        kept = self._random.random()
        return {n: v for n, v in fields.items() if n in needed or self._random.random() < kept}

    def _odd(self) -> Any:
        match self._random.randrange(6):
            case 0 | 1:
                return Spelled(self._random.choice(_SPELLED))
            case 2:
                return self._text(_MOST // 2)
            case 3:
                return [self._random.choice(("", "x", 1, None, {}))] * self._size(200_000)
            case 4:
                return {f"{number:x}": "x" for number in range(self._size(30_000))}
            case _:
                return self._random.choice((0, -1, 2**53, 10**30, 1.5, True, None, "2099", {}))

    # --- draws ------------------------------------------------------------------------------------

    def _size(self, most: int) -> int:
        """Draw a size from 1 to `most`, with all magnitudes equally likely."""
        return max(1, round(math.pow(most, self._random.random())))

    def _some_bytes(self, most: int) -> bytes:
        return self._random.randbytes(self._size(most))

    def _text(self, most_bytes: int) -> str:
        alphabet = self._random.choice(_ALPHABETS)
        size = max(1, self._size(max(2, most_bytes)) // max(1, len(alphabet.encode())))
        if self._random.random() < 0.5:
            return alphabet * size
        count = min(size, 20_000)
        return "".join(self._random.choice(alphabet) for _ in range(count))


def spelled(value: Any) -> str:
    """Return JSON text that holds each `Spelled` unchanged."""
    if isinstance(value, Spelled):
        return str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}: {spelled(member)}" for name, member in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def readable_id(value: bytes | None) -> str | None:
    """Return the job id that a worker must be able to read from these bytes, if there is one."""
    try:
        return open_record(value).job_id
    except UnreadableRecord:
        return None

"""Documents through `dragoman translate`, and their segments as requests of `LLM.generate`."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition
from job_mix import source
from residents import Dragoman
from work import Batch, Work

from dragoman_schemas.jobs import TranslationJob

SEGMENTS_PER_DOCUMENT: Final = 40
_READ_S: Final = 5.0
Row = dict[str, Any]


def write_documents(folder: Path, count: int, seed: int) -> int:
    """Write Markdown files of paragraphs, lists and headings; return their words.

    Paragraphs have 8 to 60 words, 28 on average; other words for every seed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    draw, words = random.Random(seed), 0
    for number in range(count):
        text = "\n\n".join(_blocks(draw, number)) + "\n"
        (folder / f"{number:05}.md").write_text(text, encoding="utf-8")
        words += len(text.split())
    return words


def _blocks(draw: random.Random, number: int) -> Iterator[str]:
    yield f"# Document {number}: {source(6, draw)}"
    for block in range(SEGMENTS_PER_DOCUMENT - 1):
        text = source(max(8, min(60, round(draw.gauss(28, 12)))), draw)
        if block % 10 == 9:
            yield f"## {text[:40].rstrip(' .')}"
        elif block % 10 == 8:
            yield f"- {text}"
        elif block % 10 == 7:
            start, _, rest = text.partition(" ")
            yield f"**{start}** {rest}"
        else:
            yield text


async def translated(resident: Dragoman, folder: Path, spec: Row, number: int) -> Row:
    """Run the command on a folder; count from its start to its exit."""
    files, output = folder / f"documents-{number}", folder / f"translated-{number}"
    words = write_documents(files, spec["jobs"], 1000 + number)
    shutil.rmtree(output, ignore_errors=True)
    environment = {
        **os.environ,
        "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": resident.setting.kafka,
        "DRAGOMAN_KAFKA__TOPICS": json.dumps(resident.topics[:1]),
        "DRAGOMAN_REDIS__URL": resident.setting.redis,
    }
    argv = [sys.executable, "-m", "dragoman_producer", "translate", str(files), "--to", "de"]
    argv += ["--from", "en", "--out", str(output)]
    before, start = _ends(resident), time.time()
    process = await asyncio.create_subprocess_exec(
        *argv, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    end = time.time()
    if process.returncode not in (0, 3):  # 3: done, and some segments are worth a look
        raise RuntimeError(f"translate exited with {process.returncode}: {errors.decode()[-800:]}")
    jobs = _published(resident, before)
    (folder / f"published-{number}.json").write_bytes(b"[" + b",".join(jobs) + b"]")
    report = json.loads((output / "report.json").read_text(encoding="utf-8"))
    return {
        "start": start,
        "end": end,
        "latencies": [],
        "tokens": report["tokens"],
        "words": words,
        "words_per_hour": round(words / (end - start) * 3600),
        "documents_per_hour": round(spec["jobs"] / (end - start) * 3600),
        "segments": sum(_texts(job) for job in jobs),
        "exit_status": process.returncode,
    }


def segments(work: Work, folder: Path, number: int) -> Batch:
    """Return the requests of the jobs that the command published in the same round."""
    published = json.loads((folder / f"published-{number}.json").read_bytes())
    requests = [
        work.request(f"{job['job_id']}-{index}", unit)
        for job in published
        for index, unit in enumerate(work.planner().plan(TranslationJob.model_validate(job)).units)
    ]
    path = folder / f"requests-documents-{number}.pickle"
    path.write_bytes(pickle.dumps(requests))
    return Batch([], requests, path)


def _texts(job: bytes) -> int:
    text = json.loads(job)["text"]
    return len(text) if isinstance(text, list) else 1


def _consumer(resident: Dragoman) -> Consumer:
    options = {"bootstrap.servers": resident.setting.kafka, "group.id": "benchmark-reader"}
    return Consumer({**options, "enable.auto.commit": False})


def _ends(resident: Dragoman) -> dict[int, int]:
    """Return the end offset of each partition of the jobs' topic."""
    consumer, topic = _consumer(resident), resident.topics[0]
    try:
        partitions = consumer.list_topics(topic, timeout=_READ_S).topics[topic].partitions
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), _READ_S)[1]
            for number in partitions
        }
    finally:
        consumer.close()


def _published(resident: Dragoman, before: dict[int, int]) -> list[bytes]:
    """Return the records of the jobs' topic since the given offsets."""
    wanted = sum(_ends(resident).values()) - sum(before.values())
    consumer, topic = _consumer(resident), resident.topics[0]
    consumer.assign([TopicPartition(topic, number, start) for number, start in before.items()])
    records: list[bytes] = []
    try:
        while len(records) < wanted:
            record = consumer.poll(_READ_S)
            if record is None:
                raise RuntimeError(f"{len(records)} of {wanted} published jobs could be read")
            value = record.value()
            records += [value] if value else []
        return records
    finally:
        consumer.close()

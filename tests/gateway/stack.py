"""Kafka, Redis, an echo worker with a table, and a gateway, for suites of other projects."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.processes.gateway_process import GatewayProcess
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

KEY = "dg_suites"
PROTON_BEAM = {
    "ar": "شعاع البروتون", "bg": "протонен лъч", "cs": "protonový paprsek", "da": "protonstråle",
    "de": "Protonenstrahl", "el": "δέσμη πρωτονίων", "en": "proton beam", "es": "haz de protones",
    "et": "prootonikiirgus", "fi": "protonisäde", "fr": "faisceau de protons",
    "hu": "protonnyaláb", "id": "berkas proton", "it": "fascio di protoni", "ja": "陽子ビーム",
    "ko": "양성자 빔", "lt": "protonų spindulys", "lv": "protonu staru kūlis",
    "nb": "protonstråle", "nl": "protonenbundel", "pl": "wiązka protonów",
    "pt": "feixe de prótons", "ro": "fascicul de protoni", "ru": "протонный луч",
    "sk": "protónový lúč", "sl": "protonski žarek", "sv": "protonstråle", "tr": "proton ışını",
    "uk": "протонний пучок", "zh": "质子束", "zh-Hant": "質子束", "vi": "chùm proton",
    "he": "קרן פרוטונים", "th": "ลำแสงโปรตอน",
}  # fmt: skip
"""What the suites translate, in every language that is offered by default."""
VARIANTS = {"en": ("en-US", "en-GB"), "pt": ("pt-BR", "pt-PT"), "zh": ("zh-Hans",)}
SENTENCES = (
    ("A document's title", "de", "Der Titel eines Dokuments"),
    ("My First Heading", "de", "Meine erste Überschrift"),
)


def table() -> str:
    """Return the rows of the echo engine's table."""
    rows = [
        f"{source}\t{tag}\t{text}"
        for source in dict.fromkeys(PROTON_BEAM.values())
        for base, text in PROTON_BEAM.items()
        for tag in (base, *VARIANTS.get(base, ()))
    ]
    rows += ["\t".join(sentence) for sentence in SENTENCES]
    return "".join(f"{row}\n" for row in rows)


@contextmanager
def stack(folder: Path) -> Iterator[GatewayProcess]:
    """Start everything; one key, `KEY`, may do everything."""
    redis_server = shutil.which("redis-server")
    if redis_server is None:
        raise SystemExit("redis-server is missing: run `make services`")
    (folder / "table.tsv").write_text(table(), encoding="utf-8")
    keys = folder / "keys.toml"
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    keys.write_text(f'[[key]]\nid = "suites"\nsha256 = "{digest}"\n', encoding="utf-8")
    keys.chmod(0o600)
    with KafkaBroker() as kafka, RedisServer(binary=redis_server) as redis:
        topic = kafka.create_topic("suites", 4, None)
        kafka.create_topic(f"{topic}-dead", 1, None)
        given: dict[str, Any] = {"kafka": kafka.bootstrap, "redis": redis.url, "topic": topic}
        echo = {"engine.echo.mode": "table", "engine.echo.table": str(folder / "table.tsv")}
        serve = {
            "serve.keys_file": str(keys),
            "serve.formality": ["de", "fr", "it", "es", "nl", "pl", "pt", "ja", "ru"],
        }
        with (
            WorkerProcess(folder, **given, settings=echo) as worker,
            GatewayProcess(folder, **given, settings=serve) as gateway,
        ):
            worker.ready()
            yield gateway.ready()

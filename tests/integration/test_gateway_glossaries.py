"""Glossaries by the gateway on a real Kafka and Redis, by DeepL's client and as Weblate asks."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepl
import pytest
import redis
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries

from support.processes.gateway_process import GatewayProcess
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

STRINGS = 500
TERMS = 50
ROWS = [
    "The gate is closed.\tde\tDas Tor ist zu.\tDie Schranke ist zu.\tDie Schranke ist zu.",
    *(
        f"Press button{n % TERMS} in window {n}.\tde\tDrücke den Schalter im Fenster {n}."
        f"\tDrücke Knopf{n % TERMS} im Fenster {n}.\tDrücke Knopf{n % TERMS} im Fenster {n}."
        for n in range(STRINGS)
    ),
]
"""The engine's first answer lacks the term of the glossary; asked again, it has it."""


class Served:
    """A gateway with two keys, whose jobs are judged strictly, and its Redis."""

    def __init__(self, url: str, server: RedisServer) -> None:
        self.url, self.server = url, server

    def client(self, secret: str) -> deepl.DeepLClient:
        return deepl.DeepLClient(secret, server_url=self.url)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": "DeepL-Auth-Key one", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", sent, headers, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - of this machine
            content = answer.read()
        return json.loads(content) if content else None


@pytest.fixture(scope="module")
def served(
    kafka: KafkaBroker, redis_installed: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Start a gateway and a worker that all tests of this module share."""
    folder = tmp_path_factory.mktemp("glossaries")
    topic = kafka.create_topic("gateway-glossaries", 2, None)
    kafka.create_topic(f"{topic}-dead", 1, None)
    (folder / "table.tsv").write_text("".join(f"{row}\n" for row in ROWS), encoding="utf-8")
    echo = {"engine.echo.mode": "table", "engine.echo.table": str(folder / "table.tsv")}
    with RedisServer(binary=redis_installed) as server:
        given: dict[str, Any] = {"kafka": kafka.bootstrap, "redis": server.url, "topic": topic}
        settings = {"serve.keys_file": str(_keys(folder)), "serve.formality": ["de"]}
        with (
            ForkedWorker(folder, **given, settings=echo) as worker,
            GatewayProcess(folder, **given, settings=settings) as gateway,
        ):
            worker.ready()
            yield Served(gateway.ready().url, server)


def _keys(folder: Path) -> Path:
    path = folder / "keys.toml"
    entries = (
        f'[[key]]\nid = "{name}"\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n'
        'quality = {level = "strict"}\n'
        for name in ("one", "two")
    )
    path.write_text("".join(entries), encoding="utf-8")
    path.chmod(0o600)
    return path


def names(server: RedisServer) -> set[str]:
    """Return the keys in Redis that belong to glossaries."""
    with redis.Redis.from_url(server.url) as client:
        return {key.decode() for key in client.scan_iter("dragoman:*gloss*")}


def test_deepls_client_keeps_uses_and_deletes_glossaries(served: Served) -> None:
    client, before = served.client("one"), names(served.server)
    made = client.create_glossary("UI", "EN", "DE", {"gate": "Schranke"})
    assert client.get_glossary(made.glossary_id).entry_count == 1
    assert made.glossary_id in {each.glossary_id for each in client.list_glossaries()}
    assert client.get_glossary_entries(made) == {"gate": "Schranke"}
    found = client.translate_text_with_glossary("The gate is closed.", made)
    assert str(found) == "Die Schranke ist zu."
    table = "barrier,Schranke,en,de\n"
    other = client.create_glossary_from_csv("CSV", "EN", "DE", csv_data=table)
    assert client.get_glossary_entries(other) == {"barrier": "Schranke"}
    assert len(client.get_glossary_languages()) > 1000
    for each in (made, other):
        client.delete_glossary(each)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made.glossary_id)
    assert names(served.server) <= before


def test_deepls_client_keeps_glossaries_of_several_pairs(served: Served) -> None:
    client = served.client("one")
    made = client.create_multilingual_glossary(
        "All", [Entries("EN", "DE", {"gate": "Tor"}), Entries("DE", "EN", {"Tor": "gate"})]
    )
    client.update_multilingual_glossary_dictionary(made, Entries("EN", "DE", {"fee": "Gebühr"}))
    client.replace_multilingual_glossary_dictionary(made, Entries("EN", "FR", {"gate": "porte"}))
    client.update_multilingual_glossary_name(made, "Other")
    client.delete_multilingual_glossary_dictionary(made, source_lang="DE", target_lang="EN")
    kept = client.get_multilingual_glossary(made.glossary_id)
    counts = {(d.source_lang, d.target_lang): d.entry_count for d in kept.dictionaries}
    assert (kept.name, counts) == ("Other", {("EN", "DE"): 2, ("EN", "FR"): 1})
    found = client.get_multilingual_glossary_entries(made, "EN", "DE").dictionaries
    assert found[0].entries == "gate\tTor\nfee\tGebühr"
    assert made.glossary_id in {g.glossary_id for g in client.list_multilingual_glossaries()}
    with pytest.raises(deepl.GlossaryNotFoundException, match="No dictionary found"):
        client.get_multilingual_glossary_entries(made, "FR", "DE")
    client.delete_multilingual_glossary(made)


def test_no_worker_answers_with_the_terms_before_a_change(served: Served) -> None:
    """The worker has just read the old terms, and would use them for five seconds."""
    client = served.client("one")
    made = client.create_multilingual_glossary("Gate", [Entries("EN", "DE", {"gate": "Tor"})])
    said = []
    for target in ("Tor", "Schranke", "Tor"):
        client.replace_multilingual_glossary_dictionary(made, Entries("EN", "DE", {"gate": target}))
        found = client.translate_text(
            "The gate is closed.", source_lang="EN", target_lang="DE", glossary=made
        )
        said.append(str(found))
    client.delete_multilingual_glossary(made)
    assert said == ["Das Tor ist zu.", "Die Schranke ist zu.", "Das Tor ist zu."]


def test_a_second_key_sees_nothing_of_the_first(served: Served) -> None:
    one, two = served.client("one"), served.client("two")
    made = one.create_glossary("UI", "EN", "DE", {"gate": "Tor"})
    assert two.list_glossaries() == two.list_multilingual_glossaries() == []
    for use in (two.get_glossary, two.get_glossary_entries, two.delete_glossary):
        with pytest.raises(deepl.GlossaryNotFoundException):
            use(made.glossary_id)
    with pytest.raises(deepl.DeepLException, match="Glossary not found"):
        two.translate_text("a", source_lang="EN", target_lang="DE", glossary=made.glossary_id)
    one.delete_glossary(made)


def test_weblates_requests_keep_the_terms_in_five_hundred_strings(served: Served) -> None:
    """As its DeepL engine asks: pairs, list, glossary, list, then texts with placeholders."""
    pairs = served.ask("GET", "/v2/glossary-language-pairs")["supported_languages"]
    assert {"source_lang": "en", "target_lang": "de"} in pairs
    tsv = "\n".join(f"button{n}\tKnopf{n}" for n in range(TERMS))
    name = "weblate:7:EN:DE:0123abcd"
    made = {"name": name, "source_lang": "EN", "target_lang": "DE", "entries": tsv}
    served.ask("POST", "/v2/glossaries", {**made, "entries_format": "tsv"})
    listed = served.ask("GET", "/v2/glossaries")["glossaries"]
    [glossary_id] = [each["glossary_id"] for each in listed if each["name"] == name]
    kept = 0
    for first in range(0, STRINGS, 20):
        served.ask("GET", "/v2/glossary-language-pairs")
        texts = [f"Press button{n % TERMS} in window {n}." for n in range(first, first + 20)]
        asked = {
            "text": texts, "source_lang": "EN", "target_lang": "DE", "formality": "default",
            "tag_handling": "xml", "ignore_tags": ["x"], "glossary_id": glossary_id,
        }  # fmt: skip
        found = served.ask("POST", "/v2/translate", asked)["translations"]
        kept += sum(
            f"Knopf{n % TERMS} " in each["text"] for n, each in enumerate(found, start=first)
        )
    served.ask("DELETE", f"/v2/glossaries/{glossary_id}")
    assert kept == STRINGS

"""One storm: a new topic and Redis, a load, a plan of faults, and the ledger's verdict."""

from __future__ import annotations

import json
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import redis

from support.chaos.brokers import Brokers
from support.chaos.conductor import Conductor
from support.chaos.feeder import Feeder, running
from support.chaos.fleet import Fleet, Supervising, Tallies
from support.chaos.gauges import Gauges
from support.chaos.green import Green
from support.chaos.ledger import Ledger, Letter
from support.chaos.load import MIXED_IN, Load
from support.chaos.plan import (
    SERVED_WEIGHTS,
    SILENT_WEIGHTS,
    WEIGHTS,
    Action,
    Stroke,
    drawn,
    recorded,
)
from support.chaos.progress import untold
from support.chaos.redis_blows import StruckRedis
from support.chaos.row import Row
from support.chaos.served import ServedDragoman
from support.chaos.silent_faults import SilentDragoman
from support.chaos.system import End, Place, System, Worker
from support.chaos.texts import RepeatedTexts
from support.chaos.timeline import Timeline
from support.chaos.watch import Watch

__all__ = ["Options", "Row", "explained", "storm"]

_SETTLE_S: Final = 900.0
_NOTHING_MORE_S: Final = 15.0
_LETTER_PARTITIONS: Final = 2
_POISON_AT: Final = (0.5, 0.9)
_VERDICT_WAITS_S: Final = 60.0
"""Time-out for Redis once the storm is over; slow answers are no longer findings."""
_REDELIVERIES: Final = "dragoman_redeliveries_total"
_STALE: Final = "dragoman_stale_completions_total"


@dataclass(frozen=True, slots=True)
class Options:
    """One storm: `jobs` records at `rate` per second, with a fault every 5 to 9 s."""

    seed: int
    jobs: int = 6_000
    rate: float = 150.0
    latency_s: float = 0.6
    partitions: int = 6
    workers: int = 3
    session_timeout_s: float = 6.0
    only: tuple[str, ...] = ()
    """Only these actions; all if empty."""
    spared: tuple[str, ...] = ()
    """Workers that are stopped but never killed."""
    script: tuple[Stroke, ...] = ()
    """These faults instead of the seed's plan."""
    in_turn: bool = False
    """Each fault waits until earlier ones are repaired; the load ends after the last."""
    replay: Path | None = None
    """A timeline whose faults are repeated instead of the seed's plan."""
    mix: tuple[str, ...] = ()
    """Additional records: `odd` records, two `poison`ous jobs."""
    trust: bool = False
    """Texts that repeat, for gates, memory and coalescing (`Dragoman(trust=True)`)."""
    documents: bool = False
    """Plain jobs belong to documents, whose progress is judged."""
    served: bool = False
    """Whether the engine is a server, which is killed and stopped too."""
    silent: bool = False
    """Draw from the silent family; the system must be a `SilentDragoman`."""
    loud: bool = False
    folder: Path | None = None
    """Folder of timeline and logs; a temporary one otherwise."""

    @property
    def run(self) -> str:
        """Prefix of the ids of this storm's jobs."""
        return f"s{self.seed}"

    def load(self, kinds: frozenset[str]) -> Load:
        """Return the load, with one poisonous job in the middle and one shortly before the end."""
        poison = frozenset(round(self.jobs * part) for part in _POISON_AT)
        chosen = kinds - (MIXED_IN - frozenset(self.mix))
        texts = RepeatedTexts(self.seed) if self.trust else None
        return Load(self.seed, self.run, chosen, poison, texts, documents=self.documents)

    def strokes(self) -> list[Stroke]:
        """Return the plan of faults."""
        if self.replay is not None:
            return recorded(self.replay)[1]
        if self.script:
            return list(self.script)
        only = frozenset(Action(name) for name in self.only) or None
        family = SILENT_WEIGHTS if self.silent else WEIGHTS
        family = SERVED_WEIGHTS if self.served else family
        return list(drawn(self.seed, self.jobs / self.rate, only=only, family=family))


Inspect = Callable[[Ledger, dict[str, End | None], Fleet], None]


def storm(
    brokers: Brokers, system: System, options: Options, inspect: Inspect | None = None
) -> Row:
    """Run one storm from an empty topic to the verdict. Brokers are repaired at the end.

    `inspect` may look at the ledger, all ends and the fleet before everything is taken down.
    """
    with ExitStack() as resources:
        folder = options.folder or Path(
            resources.enter_context(tempfile.TemporaryDirectory(prefix="storm-"))
        )
        folder.mkdir(parents=True, exist_ok=True)
        server = resources.enter_context(StruckRedis())
        place = _place(brokers, server, options, folder, f"storm-{options.seed}-{_stamp()}")
        resources.callback(server.close_proxy)
        if isinstance(system, SilentDragoman):
            resources.callback(system.close)
        if isinstance(system, ServedDragoman):
            resources.enter_context(system.serving(place))
        resources.callback(brokers.delete, place.topic, place.dead_letter_topic)
        return _Storm(brokers, server, system, options, place, inspect).run()


def explained(row: Row, timeline: Timeline | Path, options: Options) -> str:
    """Return the report of a failure: the problems, the timeline and the commands to repeat it."""
    file = timeline if isinstance(timeline, Path) else timeline.file
    again = f"--seeds {options.seed} --jobs {options.jobs} --rate {options.rate:g}"
    again += " --trust" if options.trust else ""
    again += " --silent" if options.silent else ""
    again += " --served" if options.served else ""
    lines = [
        f"seed {row.seed}: {row.as_json()}",
        *row.problems[:20],
        f"timeline: {file}",
        f"the same plan again: make chaos ARGS={shlex.quote(again)}",
        f"the same faults again: make chaos ARGS={shlex.quote(f'{again} --replay {file}')}",
        "" if isinstance(timeline, Path) else timeline.as_text(),
    ]
    return "\n".join(lines)


class _Storm:
    def __init__(
        self,
        brokers: Brokers,
        server: StruckRedis,
        system: System,
        options: Options,
        place: Place,
        inspect: Inspect | None,
    ) -> None:
        self._inspect = inspect
        self._brokers, self._server, self._system = brokers, server, system
        self._options, self._place = options, place
        file = place.folder / f"timeline-{options.seed}.jsonl"
        self._timeline = Timeline(file, loud=options.loud)
        self._ledger = Ledger()
        spared = frozenset(options.spared)
        there = replace(place, redis=server.proxied_url) if options.silent else place
        self._fleet = Fleet(system, there, self._timeline, size=options.workers, spared=spared)
        served = system.server if isinstance(system, ServedDragoman) else None
        self._conductor = Conductor(
            self._fleet, brokers, server, place, self._timeline, served=served
        )
        self._feeder = Feeder(place, self._ledger, rate=options.rate)
        self._watch = Watch(
            system, place, brokers, self._ledger, self._timeline, self._conductor.calm_s
        )
        self._green = Green(self._fleet, self._watch.open_partitions, self._timeline)
        self._gauges = Gauges(self._spared)
        self._tallies = Tallies(self._fleet, (_REDELIVERIES, _STALE))
        self._uncommitted = 0
        self._mended_at = self._rest_s = 0.0

    def run(self) -> Row:
        try:
            self._fleet.start()
            began = time.monotonic()
            with Supervising(self._fleet, self._look):
                self._run_faults()
                seconds = time.monotonic() - began
            with self._server.client(_VERDICT_WAITS_S) as client:
                return self._row(client, seconds)
        except BaseException:
            self._timeline.note("aborted")
            raise
        finally:
            with suppress(Exception):
                self._server.mend()
            self._brokers.mend()
            self._fleet.stop()

    def _look(self) -> None:
        self._tallies.look()
        self._green.look()

    def _spared(self) -> list[Worker]:
        return [worker for worker in self._fleet.all() if worker.name in self._fleet.spared]

    # --- the storm itself -----------------------------------------------------------------------

    def _run_faults(self) -> None:
        options = self._options
        load = options.load(self._system.kinds)
        head = {name: value for name, value in asdict(options).items() if value}
        self._timeline.begin()
        self._timeline.note("storm", system=self._system.name, **json.loads(_plain(head)))

        def feed() -> None:
            self._feeder.feed(load.records(options.jobs))

        with self._watching(), running(feed, self._feeder.cancel_all):
            try:
                self._conductor.play(options.strokes(), self._feeder.over, in_turn=options.in_turn)
                if options.in_turn:
                    self._conductor.wait()
                    self._feeder.stop()
            finally:
                self._conductor.mend()
                self._timeline.note("mended")
                self._mended_at = time.monotonic()

    @contextmanager
    def _watching(self) -> Iterator[None]:
        with running(self._watch.run, self._gauges.run):
            try:
                yield
                self._settle()
            finally:
                self._watch.stop()
                self._gauges.stop()

    def _settle(self) -> None:
        """Wait until every job has ended and is committed, or nothing more happens."""
        self._timeline.note("settling", unfinished=self._watch.unfinished)
        deadline = time.monotonic() + _SETTLE_S
        while time.monotonic() < deadline:
            self._uncommitted = self._behind()
            resting = time.monotonic() - self._watch.ended_at > _NOTHING_MORE_S
            if not self._uncommitted and (not self._watch.unfinished or resting):
                break
            time.sleep(0.5)
        self._rest_s = time.monotonic() - self._mended_at
        self._timeline.note(
            "settled", unfinished=self._watch.unfinished, uncommitted=self._uncommitted
        )

    def _behind(self) -> int:
        place = self._place
        committed = self._brokers.committed(place.group, place.topic, place.partitions)
        if committed is None:
            return -1
        ends = self._brokers.ends(place.topic, place.partitions)
        return sum(end - committed.get(number, 0) for number, end in ends.items())

    # --- the verdict ----------------------------------------------------------------------------

    def _row(self, client: redis.Redis, seconds: float) -> Row:
        ends = _all_ends(self._system, client, self._ledger.job_ids())
        self._watch.compare_all(ends)
        if self._inspect is not None:
            self._inspect(self._ledger, ends, self._fleet)
        verdict = self._ledger.judge(ends, self._letters(), with_letters=self._system.letters)
        audit = self._system.audit(self._place)
        row = Row(seed=self._options.seed, system=self._system.name, seconds=round(seconds, 1))
        row.add_conductor(self._conductor)
        row.add_verdict(verdict)
        row.add_watch(self._watch.seen)
        if self._options.documents:
            row.untold = untold(client, self._options.run, self._ledger, ends)
        row.add_green(self._green)
        row.own_deaths = self._fleet.own_deaths
        row.redeliveries = self._tallies.sums()[_REDELIVERIES]
        row.uncommitted = self._uncommitted
        row.rest_s = round(self._rest_s, 1)
        row.immortal = _immortal(client)
        row.cached = sum(end.cached for end in ends.values() if end is not None)
        if audit is not None:
            row.audit = audit[0]
            if audit[0]:
                row.problems.append(f"audit: {audit[1]}")
        row.trends = self._gauges.trends()
        row.timeline = str(self._timeline.file)
        self._timeline.note("verdict", **json.loads(row.as_json()))
        if row.broken:
            row.problems.append(explained(row, self._timeline, self._options))
        return row

    def _letters(self) -> list[Letter]:
        if not self._system.letters:
            return []
        return self._brokers.letters(self._place.dead_letter_topic, _LETTER_PARTITIONS)


def _place(
    brokers: Brokers, server: StruckRedis, options: Options, folder: Path, topic: str
) -> Place:
    configs = {
        "min.insync.replicas": str(min(2, brokers.count)),
        "message.timestamp.after.max.ms": str(2**63 - 1),  # accept odd timestamps
    }
    brokers.create_topic(topic, options.partitions, configs)
    letters = brokers.create_topic(f"{topic}-dead", _LETTER_PARTITIONS)
    return Place(
        kafka=brokers.bootstrap,
        redis=server.url,
        topic=topic,
        dead_letter_topic=letters,
        group=f"{topic}-group",
        partitions=options.partitions,
        folder=folder,
        session_timeout_s=options.session_timeout_s,
        latency_s=options.latency_s,
    )


def _all_ends(system: System, client: redis.Redis, job_ids: Sequence[str]) -> dict[str, End | None]:
    found: dict[str, End | None] = {}
    for first in range(0, len(job_ids), 1000):
        chunk = job_ids[first : first + 1000]
        found.update(zip(chunk, system.ends(client, chunk), strict=True))
    return found


def _immortal(client: redis.Redis) -> int:
    keys = list(client.scan_iter(match="dragoman:job:*", count=1000))
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.ttl(key)
    return sum(ttl == -1 for ttl in pipeline.execute())


def _plain(fields: dict[str, Any]) -> str:
    return json.dumps(fields, default=str)


def _stamp() -> str:
    return format(time.time_ns() // 1_000_000, "x")

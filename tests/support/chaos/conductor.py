"""Execution of a plan of faults on a running system, and their repair."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from typing import Any, Final

from support.chaos.brokers import Brokers
from support.chaos.fleet import BUSY, Fleet
from support.chaos.plan import Action, Stroke
from support.chaos.redis_blows import StruckRedis
from support.chaos.served import EngineServer
from support.chaos.system import Place
from support.chaos.timeline import Timeline
from support.chaos.worker_blows import blow, suits

_DEADLY: Final = {
    Action.WORKER_KILL,
    Action.REPLICA_KILL,
    Action.WORKER_TERM,
    Action.WORKER_REMOVE,
}
_ON_WORKERS: Final = _DEADLY | {
    Action.WORKER_STOP,
    Action.LOG_CLOSED,
    Action.LOG_STUCK,
    Action.LOG_FULL,
    Action.JOBS_CANCELLED,
    Action.ENGINE_STALL,
}
_MEND_S: Final = 120.0


class Conductor:
    """Injects faults at the planned times, repairs them, and records what really happened.

    One blow to the brokers and one to Redis at a time; workers are struck beside them. A blow that
    finds its victim out of reach is `skipped`, one that finds a worker with less than BUSY jobs in
    hand is `idle`: only the others count.
    """

    def __init__(
        self,
        fleet: Fleet,
        brokers: Brokers,
        redis: StruckRedis,
        place: Place,
        timeline: Timeline,
        *,
        served: EngineServer | None = None,
    ) -> None:
        self._fleet = fleet
        self._brokers = brokers
        self._redis = redis
        self._place = place
        self._served = served
        self._timeline = timeline
        self._healers = ThreadPoolExecutor(16, thread_name_prefix="healer")
        self._healing: list[Future[None]] = []
        self._broken: set[str] = set()
        self._lock = threading.Lock()
        self._calm_since = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        """Faults that could not be injected or repaired: the storm differs from its plan."""
        self.struck_in_flight = 0.0
        """Jobs in flight of all workers when they were struck, which may be computed twice."""
        self._blows: dict[Action, Callable[[Stroke], str]] = {
            Action.WORKER_ADD: self._add,
            Action.BROKER_KILL: self._node_blow,
            Action.BROKER_TERM: self._node_blow,
            Action.BROKER_STOP: self._node_blow,
            Action.COORDINATOR_KILL: self._node_blow,
            Action.COORDINATOR_STOP: self._node_blow,
            Action.LEADERS_MOVE: self._move_leaders,
            Action.ALL_BROKERS_KILL: self._all_nodes_blow,
            Action.ALL_BROKERS_STOP: self._all_nodes_blow,
            Action.LINK_CUT: self._cut,
            Action.SERVER_KILL: self._server_blow,
            Action.SERVER_STOP: self._server_blow,
        }

    # --- the run --------------------------------------------------------------------------------

    def play(
        self, strokes: Iterable[Stroke], over: threading.Event, *, in_turn: bool = False
    ) -> None:
        """Inject the planned faults at their times, until `over` is set.

        With `in_turn` none falls before all earlier ones have been mended.
        """
        for stroke in strokes:
            if in_turn:
                wait(self._healing, _MEND_S)
            if over.wait(max(0.0, stroke.at_s - self._timeline.now_s)):
                return
            self._strike(stroke)

    def wait(self) -> None:
        """Wait until every fault has been repaired."""
        wait(self._healing, _MEND_S)

    def mend(self) -> None:
        """Wait for all repairs and check that everything works again."""
        for healing in self._healing:
            try:
                healing.result(_MEND_S)
            except Exception as error:  # noqa: BLE001  reported below with all others
                self.failures.append(repr(error))
        self._healers.shutdown(wait=False)
        self._redis.mend()
        self._brokers.mend()
        if self._served is not None:
            self._served.mend()
        self._fleet.mend()

    def calm_s(self) -> float:
        """Return the seconds since the last repair with all workers running, 0 during faults."""
        with self._lock:
            calm_s = 0.0 if self._broken else time.monotonic() - self._calm_since
        return min(calm_s, self._fleet.whole_s())

    # --- strokes --------------------------------------------------------------------------------

    def _strike(self, stroke: Stroke) -> None:
        if stroke.action in _ON_WORKERS:
            last = stroke.target is None and not self._fleet.removable
            if stroke.action is Action.WORKER_REMOVE and last:
                stroke = replace(stroke, action=Action.WORKER_TERM)
            self._strike_worker(stroke)
            return
        try:
            happened = self._blows.get(stroke.action, self._redis_blow)(stroke)
        except Exception as error:  # noqa: BLE001  a fault that cannot be injected must not end the storm
            happened = "failed"
            self.failures.append(repr(error))
        if happened:
            self._note(stroke, stroke.target, happened)

    def _note(self, stroke: Stroke, target: str | None, happened: str, **more: Any) -> None:
        self.counts[f"{stroke.action}: {happened}"] += 1
        self._timeline.note(
            "strike",
            action=stroke.action,
            target=target,
            happened=happened,
            who=stroke.who,
            hold_s=stroke.hold_s,
            **more,
        )

    def _heal_after(
        self, what: str, hold_s: float, heal: Callable[[], str], done: Callable[[], None]
    ) -> None:
        with self._lock:
            self._broken.add(what)

        def work() -> None:
            time.sleep(hold_s)
            try:
                self._timeline.note("healed", target=what, how=heal())
            finally:
                done()
                with self._lock:
                    self._broken.discard(what)
                    self._calm_since = time.monotonic()

        self._healing.append(self._healers.submit(work))

    # --- workers --------------------------------------------------------------------------------

    def _strike_worker(self, stroke: Stroke) -> None:
        chosen = self._fleet.choose(
            stroke.who,
            stroke.target,
            deadly=stroke.action in _DEADLY,
            suits=partial(suits, stroke.action),
        )
        if chosen is None:
            self._note(stroke, stroke.target, "skipped")
            return
        worker, in_flight = chosen
        busy = in_flight is None or in_flight >= BUSY
        dealt = blow(stroke, worker, self._fleet)
        dealt.strike()
        self._heal_after(
            worker.name, dealt.hold_s, dealt.mend, lambda: self._fleet.release(worker.name)
        )
        self.struck_in_flight += in_flight or 0.0
        self._note(stroke, worker.name, "done" if busy else "idle", in_flight=in_flight)

    def _add(self, stroke: Stroke) -> str:
        if stroke.target is None and not self._fleet.growable:
            return "skipped"
        name = self._fleet.add()
        self._heal_after(name, 0.0, lambda: self._fleet.settled(name), lambda: None)
        self._note(stroke, name, "done")
        return ""

    # --- brokers --------------------------------------------------------------------------------

    def _claim(self, resource: str) -> bool:
        with self._lock:
            if resource in self._broken:
                return False
            self._broken.add(resource)
            return True

    def _release(self, resource: str) -> None:
        with self._lock:
            self._broken.discard(resource)
            self._calm_since = time.monotonic()

    def _node_blow(self, stroke: Stroke) -> str:
        node = self._node(stroke)
        if node is None or not self._claim("brokers"):
            return "skipped"
        brokers = self._brokers
        match stroke.action:
            case Action.BROKER_STOP | Action.COORDINATOR_STOP:
                brokers.pause(node)
                heal = _said("continued", lambda: brokers.resume(node))
            case Action.BROKER_TERM:
                # The stop itself takes seconds and is part of the fault.
                heal = _said("stopped and started", lambda: brokers.bounce(node))
            case _:
                brokers.kill(node)
                heal = _said("started", lambda: brokers.restart(node))
        self._heal_after(f"broker {node}", stroke.hold_s, heal, lambda: self._release("brokers"))
        self._note(stroke, f"broker {node}", "done")
        return ""

    def _all_nodes_blow(self, stroke: Stroke) -> str:
        if not self._claim("brokers"):
            return "skipped"
        brokers = self._brokers
        for node in range(brokers.count):
            if stroke.action is Action.ALL_BROKERS_STOP:
                brokers.pause(node)
            else:
                brokers.kill(node)
        self._heal_after(
            "all brokers",
            stroke.hold_s,
            _said("running again", brokers.mend),
            lambda: self._release("brokers"),
        )
        return "done"

    def _cut(self, stroke: Stroke) -> str:
        name, _, link = (stroke.target or "").partition(" ")
        links = getattr(self._fleet[name], "links", None)
        if links is None:
            return "skipped"
        in_flight = self._fleet[name].in_flight()
        links.cut(link)
        self._heal_after(
            f"link of {name} to {link}",
            stroke.hold_s,
            _said("joined", lambda: links.join(link)),
            lambda: None,
        )
        self._note(stroke, stroke.target, "done", in_flight=in_flight)
        return ""

    def _node(self, stroke: Stroke) -> int | None:
        if stroke.target is not None:
            return int(stroke.target.removeprefix("broker "))
        if stroke.action in {Action.COORDINATOR_KILL, Action.COORDINATOR_STOP}:
            return self._brokers.coordinator(self._place.group)
        return int(stroke.who * self._brokers.count)

    def _move_leaders(self, stroke: Stroke) -> str:
        if not self._claim("brokers"):
            return "skipped"
        self._heal_after(
            "leaders",
            0.0,
            lambda: self._brokers.move_leaders(self._place.topic, stroke.who),
            lambda: self._release("brokers"),
        )
        return "done"

    def _server_blow(self, stroke: Stroke) -> str:
        served = self._served
        if served is None or not self._claim("server"):
            return "skipped"
        if stroke.action is Action.SERVER_KILL:
            served.kill()
            heal = _said("started", served.again)
        else:
            served.pause()
            heal = _said("continued", served.resume)
        self._heal_after("the server", stroke.hold_s, heal, lambda: self._release("server"))
        return "done"

    # --- Redis ----------------------------------------------------------------------------------

    def _redis_blow(self, stroke: Stroke) -> str:
        if not self._claim("redis"):
            return "skipped"
        try:
            heal = self._hit_redis(stroke)
        except BaseException:
            self._release("redis")
            raise
        self._heal_after("Redis", stroke.hold_s, heal, lambda: self._release("redis"))
        return "done"

    def _hit_redis(self, stroke: Stroke) -> Callable[[], str]:
        server = self._redis
        blows: dict[Action, tuple[Callable[[], object], Callable[[], str]]] = {
            Action.REDIS_KILL: (server.kill, _said("started", server.start)),
            Action.REDIS_STOP: (server.freeze, _said("continued", server.thaw)),
            Action.REDIS_READONLY: (server.make_readonly, _said("writable", server.make_writable)),
            Action.REDIS_FULL: (server.squeeze, _said("has room", server.relax)),
            Action.REDIS_SCRIPT_FLUSH: (server.forget_scripts, lambda: "scripts forgotten"),
            Action.REDIS_CLIENT_KILL: (server.drop_clients, lambda: "clients dropped"),
            Action.REDIS_PASSWORD: (
                server.change_password,
                _said("no password", server.take_password_back),
            ),
            Action.REDIS_REPLIES: (
                lambda: server.refuse_all("upstream failure"),
                _said("commands pass", server.accept_all),
            ),
            Action.REDIS_CLIENT_PAUSE: (
                lambda: server.hold_clients(stroke.hold_s),
                lambda: "answers again",
            ),
        }
        hit, heal = blows[stroke.action]
        hit()
        return heal


def _said(words: str, call: Callable[[], object]) -> Callable[[], str]:
    def heal() -> str:
        call()
        return words

    return heal

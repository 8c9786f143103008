"""How do the tests get a real Apache Kafka without Docker?

Kafka is jars and a JVM: Maven copies 45 jars into a cache folder once (`DRAGOMAN_CACHE`, default
`~/.cache/dragoman`), and every broker is `java -cp 'jars/*' kafka.Kafka` on free ports of
127.0.0.1 with its log in a temporary folder (KRaft; listening after about 3 s, 290 MB).
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from support.processes.child_process import ChildProcess
from support.processes.waiting import wait_until
from support.services.ports import free_ports

_VERSION = "4.1.0"
_POM = Path(__file__).with_name("kafka") / "pom.xml"
# A broker of a test run carries megabytes: the quick compiler and the plainest collector will do.
_JVM = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
_COPY = ("mvn", "-q", "-B", "dependency:copy-dependencies")
_START_S = 60.0


class KafkaUnavailable(RuntimeError):
    """This machine cannot run a broker; the message says what to install."""


def kafka_jars() -> Path:
    """The folder with Kafka's jars, fetched by Maven on the first call; KafkaUnavailable if not."""
    if shutil.which("java") is None:
        raise KafkaUnavailable("a real Kafka needs java (Debian: default-jre-headless)")
    cache = Path(os.environ.get("DRAGOMAN_CACHE", Path.home() / ".cache" / "dragoman"))
    jars = cache / f"kafka-{_VERSION}"
    if not jars.is_dir():
        _fetch(jars)
    return jars


def _fetch(jars: Path) -> None:
    if shutil.which("mvn") is None:
        raise KafkaUnavailable("Kafka's jars are fetched by mvn (Debian: maven)")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="fetching-") as folder:
        work = Path(folder)
        # The pom is copied, for Maven writes a target folder beside it.
        shutil.copy(_POM, work / "pom.xml")
        fetched = subprocess.run(
            [*_COPY, f"-DoutputDirectory={work / 'jars'}", "-DincludeScope=runtime"],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if fetched.returncode:
            raise KafkaUnavailable(f"mvn could not fetch Kafka's jars:\n{fetched.stdout[-2000:]}")
        _move_in(work / "jars", jars)


def _move_in(fetched: Path, jars: Path) -> None:
    # Only a whole folder ever has the final name, and another run may have been first.
    try:
        fetched.rename(jars)
    except OSError:
        if not jars.is_dir():
            raise


@dataclass(frozen=True, slots=True)
class _Node:
    number: int
    port: int
    controller_port: int
    sasl_port: int
    folder: Path
    process: ChildProcess


class KafkaBroker:
    """One Apache Kafka, or a cluster of `nodes`, for as long as its context is open.

    Every node is broker and controller; nodes are numbered from 0. With `users` (names to
    passwords) each listens at one more port, by SASL PLAIN. Raises KafkaUnavailable where Java or
    Maven is missing.
    """

    def __init__(self, *, nodes: int = 1, users: Mapping[str, str] | None = None) -> None:
        self._count = nodes
        self._users = dict(users or {})
        self._nodes: list[_Node] = []
        self._resources = ExitStack()

    @property
    def bootstrap(self) -> str:
        """`host:port,...` of all nodes."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self._nodes)

    @property
    def sasl_bootstrap(self) -> str:
        """The same for users who have to say who they are."""
        return ",".join(f"127.0.0.1:{node.sasl_port}" for node in self._nodes)

    # --- life -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self._resources)
            jars = kafka_jars()
            self._lay_out(jars)
            for node in self._nodes:
                self._resources.callback(node.process.stop)
                node.process.start()
            self._wait_until_serving()
            starting.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def kill(self, node: int = 0) -> None:
        """SIGKILL: what was acknowledged must be there after `restart`."""
        self._nodes[node].process.kill()

    def restart(self, node: int = 0) -> None:
        """Start a killed node on its old port and log, and wait until the cluster serves."""
        self._nodes[node].process.start()
        self._wait_until_serving()

    def pause(self, node: int = 0) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._nodes[node].process.pause()

    def resume(self, node: int = 0) -> None:
        """SIGCONT."""
        self._nodes[node].process.resume()

    # --- topics ---------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic, replicated on every node, and answer its name once it can be used."""
        topic = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=self._count,
            config=dict(configs or {}),
        )
        admin = self._admin()
        created = admin.create_topics([topic], operation_timeout=30)
        created[name].result(timeout=30)
        wait_until(
            lambda: len(admin.list_topics(name, timeout=5).topics[name].partitions) == partitions,
            timeout_s=30,
            what=f"topic {name}",
        )
        return name

    # --- inside ---------------------------------------------------------------------------------

    def _lay_out(self, jars: Path) -> None:
        home = Path(self._resources.enter_context(tempfile.TemporaryDirectory(prefix="kafka-")))
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        ports = free_ports(3 * self._count)
        voters = ",".join(
            f"{number}@127.0.0.1:{ports[3 * number + 1]}" for number in range(self._count)
        )
        self._nodes = []
        for number in range(self._count):
            folder = home / f"node-{number}"
            folder.mkdir()
            port, controller_port, sasl_port = ports[3 * number : 3 * number + 3]
            settings = folder / "server.properties"
            properties = self._properties(number, port, controller_port, voters, folder)
            if self._users:
                properties = _with_sasl(properties, sasl_port, self._users)
            settings.write_text(properties)
            cluster = f"--cluster-id={cluster_id}"  # the id may begin with a hyphen
            format_storage = ["kafka.tools.StorageTool", "format", cluster, "-c", str(settings)]
            _java(jars, *format_storage, *self._format_arguments())
            process = ChildProcess(
                [*_JVM, "-cp", f"{jars}/*", "kafka.Kafka", str(settings)],
                log=folder / "server.log",
            )
            self._nodes.append(_Node(number, port, controller_port, sasl_port, folder, process))

    def _properties(
        self, number: int, port: int, controller_port: int, voters: str, folder: Path
    ) -> str:
        in_sync = min(2, self._count)
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": number,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": folder / "log",
            "offsets.topic.num.partitions": 4,
            "offsets.topic.replication.factor": self._count,
            "transaction.state.log.replication.factor": self._count,
            "transaction.state.log.min.isr": in_sync,
            "min.insync.replicas": in_sync,
            "auto.create.topics.enable": "false",
            # Tests of rebalances need not wait for members that do not come.
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            # A killed node may come back only when its old session has run out.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
        }
        lines = self._more_properties(properties).items()
        return "".join(f"{name}={value}\n" for name, value in lines)

    def _format_arguments(self) -> list[str]:
        """More arguments for the storage tool, for brokers with users of their own."""
        return []

    def _more_properties(self, properties: dict[str, object]) -> dict[str, object]:
        """The node's properties, for brokers with further listeners."""
        return properties

    def _admin(self) -> AdminClient:
        # log_level 0: a refused connection while the broker starts is no news.
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _wait_until_serving(self) -> None:
        def all_nodes_known() -> bool:
            try:
                return len(self._admin().list_topics(timeout=2).brokers) == self._count
            except KafkaException:
                return False

        for node in self._nodes:
            node.process.wait_for(all_nodes_known, timeout_s=_START_S, what="serving")


def _with_sasl(properties: str, port: int, users: Mapping[str, str]) -> str:
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    with_port = properties.replace("listeners=", f"listeners=SASL://127.0.0.1:{port},", 1)
    with_map = with_port.replace("protocol.map=", "protocol.map=SASL:SASL_PLAINTEXT,", 1)
    login = f"listener.name.sasl.plain.sasl.jaas.config={module} required {known};"
    return f"{with_map}sasl.enabled.mechanisms=PLAIN\n{login}\n"


def _java(jars: Path, *arguments: str) -> None:
    done = subprocess.run(
        [*_JVM, "-cp", f"{jars}/*", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} failed:\n{done.stdout}{done.stderr}")

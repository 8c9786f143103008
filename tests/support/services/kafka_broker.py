"""A real Apache Kafka for tests, without Docker.

Kafka is jars and a JVM: Maven copies 45 jars into a cache folder once (`DRAGOMAN_CACHE`, default
`~/.cache/dragoman`). Every broker is `java -cp 'jars/*' kafka.Kafka` on free ports of 127.0.0.1
with its log in a temporary folder (KRaft; listening after about 3 s, 290 MB).

The cache folder also holds formatted storage and an archive of loaded classes. They reduce the CPU
time of a start from 3.8 s to 1.7 s (measured with Java 17 on a busy machine).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from support.processes.child_process import ChildProcess
from support.processes.waiting import wait_until
from support.services.ports import free_ports

_VERSION = os.environ.get("DRAGOMAN_TEST_KAFKA", "4.1.0")
"""Another version for one run of the tests: any since 3.7 that Maven knows."""
_POM = Path(__file__).with_name("kafka") / "pom.xml"
# A broker of a test run carries megabytes: the quick compiler and the serial collector suffice.
_JVM = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
_COPY = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime")
_START_S = 60.0
_EXIT_S = 10.0
"""Time to write the archive of loaded classes; other brokers are killed with their log."""
_CLUSTER_ID: Final = "ZHJhZ29tYW4tdGVzdHMtMQ"
"""One id for all clusters, so that formatted storage can be copied."""


class KafkaUnavailable(RuntimeError):
    """This machine cannot run a broker; the message names what to install."""


def kafka_jars() -> Path:
    """Return the folder of Kafka's jars, which Maven fetches on the first call.

    Raises KafkaUnavailable where Java or Maven is missing.
    """
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
        # The pom is copied because Maven writes a target folder beside it.
        shutil.copy(_POM, work / "pom.xml")
        fetched = subprocess.run(
            [*_COPY, f"-DoutputDirectory={work / 'jars'}", f"-Dkafka.version={_VERSION}"],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if fetched.returncode:
            raise KafkaUnavailable(f"mvn could not fetch Kafka's jars:\n{fetched.stdout[-2000:]}")
        _move_in(work / "jars", jars)


def _move_in(made: Path, cached: Path) -> None:
    # Only a complete folder ever has the final name, and another run may have been first.
    try:
        made.rename(cached)
    except OSError:
        if not cached.is_dir():
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
    """One Apache Kafka, or a cluster of `nodes`, while its context is open.

    Every node is broker and controller; nodes are numbered from 0. With `users` (names to
    passwords) each node has a second listener with SASL PLAIN. Raises KafkaUnavailable where Java
    or Maven is missing.
    """

    def __init__(self, *, nodes: int = 1, users: Mapping[str, str] | None = None) -> None:
        self._count = nodes
        self._users = dict(users or {})
        self._nodes: list[_Node] = []
        self._grace_s = 0.0
        self._resources = ExitStack()

    @property
    def bootstrap(self) -> str:
        """`host:port,...` of all nodes."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self._nodes)

    @property
    def sasl_bootstrap(self) -> str:
        """`host:port,...` of the listeners with SASL PLAIN."""
        return ",".join(f"127.0.0.1:{node.sasl_port}" for node in self._nodes)

    # --- start and stop -------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self._resources)
            jars = kafka_jars()
            self._lay_out(jars)
            for node in self._nodes:
                self._resources.callback(node.process.stop, grace_s=self._grace_s)
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
        """Send SIGKILL; acknowledged records must be there after `restart`."""
        self._nodes[node].process.kill()

    def restart(self, node: int = 0) -> None:
        """Start a killed node on its old port and log, and wait until the cluster serves."""
        self._nodes[node].process.start()
        self._wait_until_serving()

    def pause(self, node: int = 0) -> None:
        """Send SIGSTOP: connections stay open and nothing answers."""
        self._nodes[node].process.pause()

    def resume(self, node: int = 0) -> None:
        """Send SIGCONT."""
        self._nodes[node].process.resume()

    # --- topics ---------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic, replicated on every node, and return its name once it can be used."""
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

    # --- internals ------------------------------------------------------------------------------

    def _lay_out(self, jars: Path) -> None:
        home = Path(self._resources.enter_context(tempfile.TemporaryDirectory(prefix="kafka-")))
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
            _format_storage(jars, number, settings, self._format_arguments())
            jvm = [*_JVM, self._class_archive(jars, folder), "-cp", f"{jars}/*"]
            process = ChildProcess([*jvm, "kafka.Kafka", str(settings)], log=folder / "server.log")
            self._nodes.append(_Node(number, port, controller_port, sasl_port, folder, process))

    def _class_archive(self, jars: Path, folder: Path) -> str:
        """Return the option that reads the archive of loaded classes, or that writes it."""
        archive = jars.with_name(f"{jars.name}.jsa")
        if archive.is_file():
            return f"-XX:SharedArchiveFile={archive}"
        written = folder / "classes.jsa"
        self._grace_s = _EXIT_S
        self._resources.callback(_keep, written, archive)
        return f"-XX:ArchiveClassesAtExit={written}"

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
            # Tests of rebalances do not wait for further members.
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            # A killed node can rejoin only once its old session has expired.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
        }
        lines = self._more_properties(properties).items()
        return "".join(f"{name}={value}\n" for name, value in lines)

    def _format_arguments(self) -> list[str]:
        """Return further arguments for the storage tool, for brokers with SCRAM users."""
        return []

    def _more_properties(self, properties: dict[str, object]) -> dict[str, object]:
        """Return the node's properties, for brokers with further listeners."""
        return properties

    def _admin(self) -> AdminClient:
        # log_level 0: connections are refused while the broker starts.
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _wait_until_serving(self) -> None:
        def all_nodes_known() -> bool:
            try:
                return len(self._admin().list_topics(timeout=2).brokers) == self._count
            except KafkaException:
                return False

        for node in self._nodes:
            node.process.wait_for(all_nodes_known, timeout_s=_START_S, what="serving")


def _format_storage(jars: Path, number: int, settings: Path, arguments: list[str]) -> None:
    """Format the log folder of one node, by the storage tool or by a copy of its earlier work.

    Storage with SCRAM users in it (`arguments`) is never copied.
    """
    log, cached = settings.parent / "log", jars.with_name(f"{jars.name}-storage-{number}")
    if cached.is_dir() and not arguments:
        shutil.copytree(cached, log)
        return
    tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={_CLUSTER_ID}", "-c", str(settings)]
    _java(jars, *tool, *arguments)
    if not arguments:
        with tempfile.TemporaryDirectory(dir=jars.parent, prefix="formatted-") as folder:
            _move_in(Path(shutil.copytree(log, Path(folder) / "log")), cached)


def _keep(written: Path, archive: Path) -> None:
    """Move a class archive into the cache; a killed broker has written none."""
    if written.is_file():
        shutil.copy(written, partial := archive.with_suffix(f".{os.getpid()}"))
        partial.rename(archive)


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

"""Apache Kafka: a cluster of one process in KRaft mode, which is both broker and controller."""

from __future__ import annotations

import os
import uuid
from base64 import urlsafe_b64encode

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headgate.embedded.host import LOOPBACK, accepts_connections, private_file, private_folder
from headgate.embedded.jars import fetch, find_java, service_options
from headgate.embedded.process import Command
from headgate.embedded.service import Commands, Placement, Requirements, ServiceName, configuration


class Kafka:
    """The service ``kafka``. Its second port is the controller's."""

    name: ServiceName = "kafka"
    requirements = Requirements(("kafka", "kafka-controller"), memory=600, disk=300, start_timeout=120, stop_timeout=15)

    def prepare(self, placement: Placement) -> Commands:
        """Write the settings. A new data folder must be formatted before the server can use it."""
        private_folder(placement.data, placement.user)
        text = configuration("kafka.properties").format(
            host=LOOPBACK, port=placement.ports[0], controller=placement.ports[1]
        )
        private_file(placement.data / "server.properties", text, placement.user)
        private_file(placement.data / "log4j2.yaml", configuration("kafka.log4j2.yaml"), placement.user)
        java = _java(placement)
        server = Command((*java, "kafka.Kafka", "server.properties"), placement.data, placement.user)
        if (placement.data / "data" / "meta.properties").exists():
            return Commands(server)
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config=server.properties")
        # Only the quick compiler: the tool ends before the optimising one pays off.
        quick = (java[0], "-XX:TieredStopAtLevel=1", *java[1:])
        return Commands(server, setup=Command((*quick, *tool), placement.data, placement.user))

    def is_ready(self, placement: Placement) -> bool:
        """Whether the broker answers. A client is made only when the port is open, because it would retry in the background."""
        if not accepts_connections(placement.port):
            return False
        admin = AdminClient({"bootstrap.servers": self.address(placement), "log_level": 0})
        try:
            return len(admin.list_topics(timeout=2).brokers) == 1
        except KafkaException:
            return False

    def after_start(self, placement: Placement) -> None:
        """Nothing to do. Topics are created by their users."""

    def address(self, placement: Placement) -> str:
        return f"{LOOPBACK}:{placement.port}"

    public_address = address


def _java(placement: Placement) -> tuple[str, ...]:
    """The beginning of both commands: java, its options and the jars. The heap is small, because a world serves one user."""
    scratch = private_folder(placement.data / "tmp", placement.user)
    options = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true")
    settings = ("-Dlog4j2.configurationFile=log4j2.yaml", f"-Djava.io.tmpdir={scratch}")
    return (
        str(find_java().path),
        *options,
        *service_options(),
        *settings,
        "-cp",
        os.pathsep.join(map(str, fetch("kafka"))),
    )

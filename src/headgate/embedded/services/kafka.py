"""Apache Kafka in KRaft mode: broker and controller in one process, a cluster of one."""

from __future__ import annotations

import os
import uuid
from base64 import urlsafe_b64encode

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headgate.embedded.host import LOOPBACK, answers, own_file, own_folder
from headgate.embedded.jars import fetch, find_java
from headgate.embedded.process import Launch
from headgate.embedded.service import Launches, Needs, ServiceName, Site

# Relative paths: Kafka splits log.dirs at commas, and a world folder may have one in its name.
# Few partitions for the inner topics, since each is a folder to make and to open at every start.
# A short session, since after a kill the controller refuses the new broker until the session of the old one is over:
# measured 6.5 s from the controller's start to the broker's with 6 s, 3.4 s with 2 s, as without a kill.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=data
auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
controlled.shutdown.max.retries=1
log.segment.bytes=134217728
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
"""

LOG4J = """\
Configuration:
  status: error
  Appenders:
    Console:
      name: out
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
  Loggers:
    Root:
      level: warn
      AppenderRef:
        ref: out
    Logger:
      - name: kafka.server.KafkaRaftServer
        level: info
"""


class Kafka:
    name: ServiceName = "kafka"
    needs = Needs(("kafka", "kafka-controller"), memory=600, disk=300, patience=120, grace=15)

    def prepare(self, site: Site) -> Launches:
        own_folder(site.data, site.user)
        text = PROPERTIES.format(host=LOOPBACK, port=site.ports[0], controller=site.ports[1])
        own_file(site.data / "server.properties", text, site.user)
        own_file(site.data / "log4j2.yaml", LOG4J, site.user)
        java = _java(site)
        main = Launch((*java, "kafka.Kafka", "server.properties"), site.data, site.user)
        if (site.data / "data" / "meta.properties").exists():
            return Launches(main)
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config=server.properties")
        quick = (
            java[0],
            "-XX:TieredStopAtLevel=1",
            *java[1:],
        )  # it runs too short a time to be worth compiling
        return Launches(main, first=Launch((*quick, *tool), site.data, site.user))

    def answers(self, site: Site) -> bool:
        if not answers(site.port):
            return False
        admin = AdminClient({"bootstrap.servers": self.address(site), "log_level": 0})
        try:
            return len(admin.list_topics(timeout=2).brokers) == 1
        except KafkaException:
            return False

    def settle(self, site: Site) -> None:
        """Nothing: topics are made by those who want them."""

    def address(self, site: Site) -> str:
        return f"{LOOPBACK}:{site.port}"

    public_address = address


def _java(site: Site) -> tuple[str, ...]:
    scratch = own_folder(site.data / "tmp", site.user)
    options = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true")
    settings = ("-Dlog4j2.configurationFile=log4j2.yaml", f"-Djava.io.tmpdir={scratch}")
    return (str(find_java().path), *options, *settings, "-cp", os.pathsep.join(map(str, fetch("kafka"))))

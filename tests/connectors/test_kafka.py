"""A Kafka cluster of the embedded world: described, provisioned and read, one record at a time."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from headgate.connectors.errors import TopicNotFound, TopicRefused
from headgate.connectors.kafka import MAX_SKIP, KafkaCluster, NewTopicOptions
from headgate.connectors.options import ConnectionOptions
from headgate.embedded.world import World
from tests.embedded.world_fixtures import eventually, open_world

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield from open_world(tmp_path_factory)


@pytest.fixture(scope="module")
def cluster(world: World) -> KafkaCluster:
    return KafkaCluster(ConnectionOptions("kafka", (("BROKER", (world.kafka(),)),)))


@pytest.fixture
def name() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def write(cluster: KafkaCluster, topic: str, *values: bytes, partition: int = 0, transaction: str = "") -> None:
    settings = {**cluster.librdkafka(), **({"transactional.id": transaction} if transaction else {})}
    producer = Producer(settings)
    if transaction:
        producer.init_transactions(30)
        producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"k", partition=partition, timestamp=1_000_000)
    producer.flush(30)
    if transaction.startswith("aborted"):
        producer.abort_transaction(30)


def test_the_cluster_answers(cluster: KafkaCluster) -> None:
    cluster.check()
    assert repr(cluster) == f"KafkaCluster({cluster.brokers})"


def test_a_topic_is_created_with_its_options_and_creating_it_again_is_no_error(
    cluster: KafkaCluster, name: str
) -> None:
    options = NewTopicOptions(3, config=(("cleanup.policy", "compact"),))
    cluster.create_topic(name, options)
    topic = cluster.topic(name)
    assert (topic.name, topic.partitions, bool(topic.id)) == (name, 3, True)
    cluster.create_topic(name, NewTopicOptions(9))
    assert cluster.topic(name) == topic
    assert cluster.topic_config(name)["cleanup.policy"] == "compact"


def test_a_topic_that_cannot_be_created_is_refused_with_the_reason(cluster: KafkaCluster) -> None:
    with pytest.raises(TopicRefused):
        cluster.create_topic("no/such:name", NewTopicOptions())
    with pytest.raises(TopicRefused):
        cluster.create_topic("too-many-copies", NewTopicOptions(replicas=7))


def test_a_missing_topic_is_reported_with_similar_names(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, NewTopicOptions())

    def similar() -> tuple[str, ...]:
        with pytest.raises(TopicNotFound) as caught:
            cluster.topic(name[:-1])
        return caught.value.similar

    assert eventually(lambda: name in similar())  # the broker lists a new topic a moment after it is made
    assert cluster.topics([name[:-1]]) == {}
    with pytest.raises(TopicNotFound):
        cluster.delete_topic(name[:-1])


def test_a_topic_that_was_created_again_has_another_id(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, NewTopicOptions())
    first = cluster.topic(name)
    cluster.delete_topic(name)
    assert eventually(lambda: not cluster.topics([name]))
    cluster.create_topic(name, NewTopicOptions())
    second = cluster.topic(name)
    assert second.id != first.id


def test_offsets_are_returned_per_partition(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, NewTopicOptions(2))
    write(cluster, name, b"a", b"b", partition=1)
    topic = cluster.topic(name)
    assert cluster.offsets(topic, latest=False) == {0: 0, 1: 0}
    assert cluster.offsets(topic, latest=True) == {0: 0, 1: 2}
    assert cluster.offsets_at_time(topic, 0) == {0: 0, 1: 0}
    assert cluster.offsets_at_time(topic, 2_000_000) == {0: 0, 1: 2}


def test_an_open_transaction_does_not_count(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, NewTopicOptions())
    write(cluster, name, b"a")
    write(cluster, name, b"b", transaction=f"open-{name}")
    assert cluster.offsets(cluster.topic(name), latest=True) == {0: 1}


def test_one_record_is_read_by_its_place(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, NewTopicOptions())
    write(cluster, name, b"a", b"b")
    assert cluster.read_record(name, 0, 1) == (b"k", b"b")


def test_many_records_are_read_by_their_places(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, NewTopicOptions(2))
    write(cluster, name, *(b"%d" % n for n in range(MAX_SKIP + 10)), partition=0)
    write(cluster, name, b"never", partition=1, transaction=f"aborted-{name}")
    # The broker ends a transaction with a record of its own, in its own time.
    assert eventually(lambda: cluster.offsets(cluster.topic(name), latest=True)[1] == 2)
    write(cluster, name, b"after", b"last", partition=1)
    places = [(0, 1), (0, 2), (0, 5), (0, MAX_SKIP + 8), (1, 0), (1, 2), (1, 3), (1, 9), (0, 3)]
    found = [record and record[1] for record in cluster.read_records(name, places)]
    assert found == [b"1", b"2", b"5", b"%d" % (MAX_SKIP + 8), None, b"after", b"last", None, b"3"]


def test_a_record_of_an_aborted_transaction_is_not_there(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, NewTopicOptions())
    write(cluster, name, b"never", transaction=f"aborted-{name}")
    write(cluster, name, b"after")
    assert cluster.read_record(name, 0, 0) is None

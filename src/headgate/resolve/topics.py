"""The topic that a statement reads or writes."""

from __future__ import annotations

from headgate.resolve.errors import TopicMissing
from headgate.sql.connections import Kafka, KafkaConnection, ReadOptions, WriteOptions
from headgate.sql.errors import RepeatedOption


def topic_name(kafka: Kafka[ReadOptions] | Kafka[WriteOptions]) -> str:
    topic = kafka.options.topic
    if not isinstance(kafka, KafkaConnection):
        if topic is not None:
            raise RepeatedOption("TOPIC", "the topic")
        return kafka.topic
    if not topic:
        raise TopicMissing(str(kafka.connection)).at(kafka.connection.span)
    return topic

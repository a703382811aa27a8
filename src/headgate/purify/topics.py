"""The topic that a statement reads or writes."""

from __future__ import annotations

from headgate.purify.errors import TopicMissing
from headgate.sql.errors import RepeatedOption
from headgate.sql.kafka import Kafka, KafkaConnection
from headgate.sql.options import StringLiteral, option


def topic_name(kafka: Kafka) -> str:
    topic = option(kafka.options, "TOPIC")
    if not isinstance(kafka, KafkaConnection):
        if topic is not None:
            raise RepeatedOption("TOPIC", "the topic")
        return kafka.topic
    if not isinstance(topic, StringLiteral) or not topic.value:
        raise TopicMissing(str(kafka.connection)).at(kafka.connection.span)
    return topic.value

"""The topic that a statement reads or writes."""

from __future__ import annotations

from headgate.purify.errors import TopicMissing
from headgate.sql.ast.kafka import Kafka, KafkaConnection
from headgate.sql.ast.values import StringLiteral, option


def topic_name(kafka: Kafka) -> str:
    if not isinstance(kafka, KafkaConnection):
        return kafka.topic
    topic = option(kafka.options, "TOPIC")
    if not isinstance(topic, StringLiteral) or not topic.value:
        raise TopicMissing(str(kafka.connection)).at(kafka.connection.span)
    return topic.value

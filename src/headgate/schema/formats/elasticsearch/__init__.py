"""The mapper for Elasticsearch and OpenSearch: `to_elasticsearch` makes a mapping, `from_elasticsearch` reads one.

In: a record, with options for what the products do differently; or the `mappings` of an index as its server returns
them. Out: a mapping as JSON, strict and with every leaf typed; or a record. An index knows no nullability and no
arrays: any field may be missing, and may hold several values. Imports `headgate.schema`; no I/O.
"""

from headgate.schema.formats.elasticsearch.read import from_elasticsearch
from headgate.schema.formats.elasticsearch.write import (
    DecimalAs,
    JsonAs,
    Options,
    to_elasticsearch,
    to_elasticsearch_field,
)

__all__ = [
    "DecimalAs",
    "JsonAs",
    "Options",
    "from_elasticsearch",
    "to_elasticsearch",
    "to_elasticsearch_field",
]

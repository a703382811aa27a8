"""The files that every .proto file may import without bringing them along.

Protobuf's own come with its library. Those of `google/type` and `confluent/` are written down here: they are small,
stable, and the packages that hold them are larger than this project.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headgate.schema.formats.proto_text.parser import parse_proto

_OF_THE_LIBRARY = (
    any_pb2, api_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, source_context_pb2, struct_pb2,
    timestamp_pb2, type_pb2, wrappers_pb2,
)  # fmt: skip

_TEXTS = {
    "google/type/calendar_period.proto": """
        enum CalendarPeriod {
          CALENDAR_PERIOD_UNSPECIFIED = 0; DAY = 1; WEEK = 2; FORTNIGHT = 3; MONTH = 4; QUARTER = 5; HALF = 6; YEAR = 7;
        }""",
    "google/type/date.proto": "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "google/type/datetime.proto": """
        import "google/protobuf/duration.proto";
        message DateTime {
          int32 year = 1; int32 month = 2; int32 day = 3; int32 hours = 4; int32 minutes = 5; int32 seconds = 6;
          int32 nanos = 7;
          oneof time_offset { .google.protobuf.Duration utc_offset = 8; .google.type.TimeZone time_zone = 9; }
        }
        message TimeZone { string id = 1; string version = 2; }""",
    "google/type/dayofweek.proto": """
        enum DayOfWeek {
          DAY_OF_WEEK_UNSPECIFIED = 0;
          MONDAY = 1; TUESDAY = 2; WEDNESDAY = 3; THURSDAY = 4; FRIDAY = 5; SATURDAY = 6; SUNDAY = 7;
        }""",
    "google/type/decimal.proto": "message Decimal { string value = 1; }",
    "google/type/fraction.proto": "message Fraction { int64 numerator = 1; int64 denominator = 2; }",
    "google/type/interval.proto": """
        import "google/protobuf/timestamp.proto";
        message Interval { .google.protobuf.Timestamp start_time = 1; .google.protobuf.Timestamp end_time = 2; }""",
    "google/type/latlng.proto": "message LatLng { double latitude = 1; double longitude = 2; }",
    "google/type/money.proto": "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
    "google/type/month.proto": """
        enum Month {
          MONTH_UNSPECIFIED = 0; JANUARY = 1; FEBRUARY = 2; MARCH = 3; APRIL = 4; MAY = 5; JUNE = 6; JULY = 7;
          AUGUST = 8; SEPTEMBER = 9; OCTOBER = 10; NOVEMBER = 11; DECEMBER = 12;
        }""",
    "google/type/timeofday.proto": """
        message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }""",
    "confluent/meta.proto": """
        import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend .google.protobuf.FileOptions { .confluent.Meta file_meta = 1088; }
        extend .google.protobuf.MessageOptions { .confluent.Meta message_meta = 1088; }
        extend .google.protobuf.FieldOptions { .confluent.Meta field_meta = 1088; }
        extend .google.protobuf.EnumOptions { .confluent.Meta enum_meta = 1088; }
        extend .google.protobuf.EnumValueOptions { .confluent.Meta enum_value_meta = 1088; }""",
    "confluent/type/decimal.proto": "message Decimal { bytes value = 1; int32 scale = 2; }",
}


@cache
def well_known() -> Mapping[str, FileDescriptorProto]:
    """By file name, names as written in them; not to be changed."""
    files = {}
    for module in _OF_THE_LIBRARY:
        file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        files[file.name] = file
    for name, text in _TEXTS.items():
        package = name.rpartition("/")[0].replace("/", ".")
        file = parse_proto(f'syntax = "proto3"; package {package}; {text}')
        file.name = name
        file.ClearField("source_code_info")
        files[name] = file
    return MappingProxyType(files)

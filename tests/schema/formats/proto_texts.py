"""Random .proto texts that protoc takes, and blanks and comments strewn between their words."""

from __future__ import annotations

from random import Random

from headgate.schema.formats.proto_text.lexer import Kind, tokenize

_SCALARS = [
    "double",
    "float",
    "int64",
    "uint64",
    "int32",
    "fixed64",
    "fixed32",
    "bool",
    "string",
    "bytes",
    "uint32",
    "sfixed32",
    "sfixed64",
    "sint32",
    "sint64",
]
_KEYS = [
    "int64",
    "uint64",
    "int32",
    "fixed64",
    "fixed32",
    "bool",
    "string",
    "uint32",
    "sfixed32",
    "sfixed64",
    "sint32",
    "sint64",
]
_DEFAULTS = {
    "double": ["1.5", "-2e-7", "inf", "nan", "7", "0x10", ".5"],
    "float": ["0.1", "-1e30", "3.14159265", "-inf"],
    "bool": ["true", "false"],
    "string": ['"x"', '"\\u00e9" "y"', "'it\\'s'"],
    "bytes": ['"\\xff\\0"', '"abc"'],
}
_ANY = [
    "0",
    "1",
    "-1",
    "1.5",
    '"x"',
    "true",
    "int32",
    "map",
    "group",
    "M1",
    "message",
    "enum",
    "oneof",
    "option",
    "reserved",
]
_ANY += ["optional", "repeated", "required", "{", "}", "=", ";", "."]
_WORDS = [
    "value",
    "first_name",
    "http2_url",
    "Upper",
    "message",
    "option",
    "a__b",
    "x9",
    "_lead",
    "trail_",
    "max",
    "to",
]


class _Names:
    def __init__(self, random: Random) -> None:
        self.random, self.count = random, 0

    def __call__(self, prefix: str = "") -> str:
        """A name that is new in the whole file, and so is its JSON name."""
        self.count += 1
        return f"{prefix or self.random.choice(_WORDS)}{self.count}"


def proto_text(seed: int, package: str) -> str:
    """A valid file, in proto2 or proto3, with everything that messages, enums and services can have."""
    random = Random(seed)
    return _Text(random, random.choice(["proto2", "proto3"]), package).file()


def strewn(text: str, seed: int) -> str:
    """The same words with other blanks between them, and comments anywhere."""
    random, made = Random(seed), ""
    for token in tokenize(text):
        made += _gap(random) + token.text
        if token.kind is not Kind.SYMBOL or token.text == ".":
            made += " "
    return made


def with_one_wrong_word(text: str, seed: int) -> str:
    """One word after the package removed, doubled, exchanged with another or replaced. It may still be valid."""
    random, words = Random(seed), [token.text for token in tokenize(text)]
    head = words.index("import")
    at, other = random.randrange(head, len(words)), random.randrange(head, len(words))
    match random.randrange(4):
        case 0:
            del words[at]
        case 1:
            words.insert(at, words[at])
        case 2:
            words[at], words[other] = words[other], words[at]
        case _:
            words[at] = random.choice(_ANY)
    return " ".join(words)


def _gap(random: Random) -> str:
    if random.random() < 0.6:
        return random.choice(["", " ", "\n"])
    parts = [
        "\n",
        "\n\n",
        " ",
        "\t",
        "// one\n",
        "  // two\n",
        "/* block */",
        "/* more\n   * lines\n */",
        "/**/",
        "//\n",
        "/* a\n b */\n",
    ]
    return "".join(random.choice(parts) for _ in range(random.randint(1, 5)))


class _Text:
    def __init__(self, random: Random, syntax: str, package: str) -> None:
        self.random, self.syntax, self.package = random, syntax, package
        self.names = _Names(random)
        self.messages: list[str] = []
        self.enums: list[tuple[str, str]] = []

    def file(self) -> str:
        parts = [
            f'syntax = "{self.syntax}";',
            f"package {self.package};",
            'import "google/protobuf/timestamp.proto";',
        ]
        if self.random.random() < 0.5:
            parts.append('option java_package = "a.b"; option cc_enable_arenas = true;')
        count = self.random.randint(1, 4)
        parts.extend(self._enum() if self.random.random() < 0.3 else self._message(0) for _ in range(count))
        if self.messages and self.random.random() < 0.5:
            parts.append(self._service())
        return "\n".join(parts)

    def _message(self, depth: int) -> str:
        name = self.names("M")
        body, number = [], 1
        for _ in range(self.random.randint(0, 6)):
            choice = self.random.random()
            if choice < 0.12 and depth < 3:
                body.append(self._message(depth + 1))
            elif choice < 0.2:
                body.append(self._enum())
            elif choice < 0.3:
                body.append(self._oneof(number))
                number += 3
            elif choice < 0.4:
                value = self.random.choice(_SCALARS + self._types())
                body.append(f"map<{self.random.choice(_KEYS)}, {value}> {self.names()} = {number};")
                number += 1
            else:
                body.append(self._field(number))
                number += 1
        body.append(
            self.random.choice(
                ["", f"reserved {number + 5}, {number + 7} to {number + 9};", 'reserved "gone", "old";']
            )
        )
        if self.syntax == "proto2":
            body.append(self.random.choice(["", f"extensions {number + 100} to max;"]))
        self.messages.append(f".{self.package}.{name}" if depth == 0 else name)
        if depth:
            self.messages.pop()
        self.random.shuffle(body)
        return f"message {name} {{\n" + "\n".join(body) + "\n}"

    def _types(self) -> list[str]:
        return [
            *self.messages,
            *(name for name, _ in self.enums),
            ".google.protobuf.Timestamp",
            "google.protobuf.Timestamp",
        ]

    def _field(self, number: int) -> str:
        labels = (
            ["optional ", "repeated ", "required "]
            if self.syntax == "proto2"
            else ["", "optional ", "repeated "]
        )
        label = self.random.choice(labels)
        type_ = self.random.choice(_SCALARS + self._types())
        return f"{label}{type_} {self.names()} = {number}{self._options(label, type_)};"

    def _options(self, label: str, type_: str) -> str:
        options = []
        if self.random.random() < 0.2:
            options.append("deprecated = true")
        if self.random.random() < 0.1:
            options.append(f'json_name = "{self.names("j-")}"')
        if self.syntax == "proto2" and label != "repeated " and self.random.random() < 0.4:
            first = dict(self.enums).get(type_)
            values = [first] if first else _DEFAULTS.get(type_, ["5"] if type_ in _SCALARS else [])
            options += [f"default = {self.random.choice(values)}"] if values else []
        return f" [{', '.join(options)}]" if options else ""

    def _oneof(self, number: int) -> str:
        fields = (
            f"{self.random.choice(_SCALARS)} {self.names()} = {number + i};"
            for i in range(self.random.randint(1, 3))
        )
        return f"oneof {self.names('o')} {{ {' '.join(fields)} }}"

    def _enum(self) -> str:
        name, first = self.names("E"), self.names("V")
        values = [f"{first} = 0;"] + [
            f"{self.names('V')} = {n};" for n in range(1, self.random.randint(1, 4))
        ]
        values += self.random.choice(
            [[], [f"{self.names('V')} = -3 [deprecated = true];"], ['reserved "X"; reserved 9, 20 to max;']]
        )
        return f"enum {name} {{ {' '.join(values)} }}"

    def _service(self) -> str:
        stream = self.random.choice(["", "stream "])
        methods = (
            f"rpc R{i}({stream}{self.random.choice(self.messages)}) returns ({self.random.choice(self.messages)});"
            for i in range(2)
        )
        return f"service {self.names('S')} {{ {' '.join(methods)} }}"

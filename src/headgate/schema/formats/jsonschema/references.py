"""The targets of `$ref` in JSON Schemas: documents by address, parts of them by pointer or anchor."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urljoin

from headgate.errors import similar_names
from headgate.schema.errors import MalformedJsonSchema, UnknownReference

FORMAT = "json schema"

# Under these keywords are values, in which `$ref` and `$id` are data.
_DATA = frozenset(("enum", "const", "default", "examples", "example"))


class References:
    """Every document that a `$ref` can reach. A reference is relative to the `$id` of the schema around it."""

    def __init__(self, root: object, documents: Mapping[str, object]) -> None:
        self._by_address: dict[str, object] = {}
        self._by_anchor: dict[tuple[str, str], object] = {}
        self._bases: dict[int, str] = {}  # by identity of the node that holds a $ref; the documents keep it alive
        self._keep = (root, documents)
        for address, document in (("", root), *documents.items()):
            self._by_address[address] = document
            self._index(document, address)

    def find(self, node: Mapping[str, object], reference: str, path: str) -> object:
        """The schema that a node's reference means. Raises UnknownReference."""
        base = self._bases.get(id(node), "")
        target = _join(base, reference, path)
        address, _, fragment = target.partition("#")
        document = self._by_address.get(address)
        if document is None:  # a registry gives documents by the text of the reference
            address = reference.partition("#")[0]
            document = self._by_address.get(address)
        if document is None:
            known = [name for name in self._by_address if name]
            raise UnknownReference(FORMAT, path, reference, similar_names(reference, known))
        if fragment and not fragment.startswith("/"):
            return self._anchor(address, unquote(fragment), reference, path)
        return _follow(document, unquote(fragment), reference, path)

    def _anchor(self, address: str, anchor: str, reference: str, path: str) -> object:
        if (address, anchor) not in self._by_anchor:
            known = [name for _, name in self._by_anchor]
            raise UnknownReference(FORMAT, path, reference, similar_names(anchor, known))
        return self._by_anchor[address, anchor]

    def _index(self, document: object, address: str) -> None:
        waiting = [(document, address)]
        while waiting:
            node, base = waiting.pop()
            if isinstance(node, dict):
                base = self._enter(node, base)
                waiting.extend(
                    (value, base) for key, value in node.items() if key not in _DATA or isinstance(value, dict)
                )
            elif isinstance(node, list):
                waiting.extend((value, base) for value in node)

    def _enter(self, node: Mapping[str, object], base: str) -> str:
        """Record the node's address and anchors. Returns the base address of what is inside it."""
        for key in ("$id", "id"):
            own = node.get(key)
            if isinstance(own, str) and own.startswith("#"):
                self._by_anchor.setdefault((base, own[1:]), node)
            elif isinstance(own, str) and own:
                base = _join(base, own, "$").partition("#")[0]
                self._by_address.setdefault(base, node)
        for key in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(key)
            if isinstance(anchor, str):
                self._by_anchor.setdefault((base, anchor), node)
        if base and not node.keys().isdisjoint(("$ref", "$dynamicRef", "$recursiveRef")):
            self._bases[id(node)] = base
        return base


def _join(base: str, reference: str, path: str) -> str:
    if reference.startswith("#"):  # urljoin drops a base whose scheme it does not know, such as urn
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        raise MalformedJsonSchema(path, "the reference is not an address") from None


def _follow(document: object, pointer: str, reference: str, path: str) -> object:
    node = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(node):
            node = node[int(key[:9])]
        else:
            known = list(node) if isinstance(node, dict) else []
            raise UnknownReference(FORMAT, path, reference, similar_names(key, known))
    return node

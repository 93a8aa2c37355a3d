"""The operations of a description, each with everything that applies to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bespeak.documents.openapi.answers import AnswerReader
from bespeak.documents.openapi.bodies import BodyReader
from bespeak.documents.openapi.description import Operation
from bespeak.documents.openapi.notices import Notices
from bespeak.documents.openapi.parameters import ParameterReader
from bespeak.documents.openapi.rate_limit import read_rate
from bespeak.documents.openapi.references import References, is_reference
from bespeak.documents.openapi.rules import DUPLICATE_OPERATION_ID, NOT_IMPORTED
from bespeak.documents.openapi.schema_assembly import SchemaReader
from bespeak.documents.openapi.security import SecurityReader
from bespeak.documents.openapi.servers import ServerReader
from bespeak.documents.openapi.spot import Spot
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.untyped import as_texts

MAX_OPERATIONS: Final = 20_000

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


class OperationReader:
    """Reads the operations of one description."""

    def __init__(
        self, root: Spot, references: References, notices: Notices, *, version: tuple[int, int], base_url: str | None
    ) -> None:
        swagger = version[0] == 2
        modern = version >= (3, 1)
        schemas = SchemaReader(references, notices, modern=modern)
        self._root = root
        self._references = references
        self._notices = notices
        self._swagger = swagger
        self._modern = modern
        self._parameters = ParameterReader(references, schemas, notices, swagger=swagger)
        self._bodies = BodyReader(references, schemas, notices)
        self._answers = AnswerReader(references, schemas, self._bodies, notices, swagger=swagger)
        self._servers = ServerReader(root, base_url, notices)
        self.security = SecurityReader(root, references, notices, swagger=swagger)
        self._ids: dict[str, str] = {}

    def read(self) -> Iterator[Operation]:
        """Read all operations, path by path."""
        count = 0
        for path, item in self._items():
            for method in _METHODS:
                operation = item.below(method)
                if operation.value is None:
                    continue
                if not isinstance(operation.value, dict):
                    self._notices.error(
                        WRONG_VALUE, f"`{method}` is {brief(operation.value)}, not an object", operation
                    )
                    continue
                count += 1
                if count > MAX_OPERATIONS:
                    message = f"there are more than {MAX_OPERATIONS:,} operations; the others are left out"
                    self._notices.error(NOT_IMPORTED, message, operation)
                    return
                yield self._operation(method.upper(), path, item, operation)

    def _items(self) -> Iterator[tuple[str, Spot]]:
        for written, given in self._root.below("paths").entries():
            item = self._path_item(given)
            if item is None:
                continue
            path = written.strip()
            if not path.startswith("/"):
                self._notices.warning(WRONG_VALUE, f"the path {brief(written)} does not start with a slash", given)
                path = f"/{path}"
            if "?" in path or "#" in path:
                message = f"the path {brief(written)} contains a query or fragment, which is not part of a path"
                advice = "A query is sent unchanged, a fragment is dropped. Describe them as parameters."
                self._notices.warning(WRONG_VALUE, message, given, advice)
            yield path, item

    def _path_item(self, given: Spot) -> Spot | None:
        if not isinstance(given.value, dict):
            self._notices.error(WRONG_VALUE, f"a path is {brief(given.value)}, not an object", given)
            return None
        if not is_reference(given.value):
            return given
        target = self._references.follow(given)
        own = {name: value for name, value in given.value.items() if name != "$ref"}
        if target is None or not isinstance(target.value, dict):
            return Spot(own, given.document, given.at) if own else None
        return Spot({**target.value, **own}, target.document, given.at) if own else target

    def _operation(self, method: str, path: str, item: Spot, operation: Spot) -> Operation:
        if self._swagger:
            body = self._bodies.read_swagger(item, operation, self._parameters, self._types(operation, "consumes"))
            base = self._servers.read_swagger(operation)
        else:
            body = self._bodies.read(operation, method)
            base = self._servers.read(item, operation)
        if operation.value.get("callbacks"):
            self._notices.info(
                NOT_IMPORTED, "the callbacks of the operation are not imported", operation.below("callbacks")
            )
        return Operation(
            method=method,
            path=path,
            base=base,
            pointer=operation.at,
            operation_id=self._id(operation),
            summary=operation.text("summary") or item.text("summary"),
            description=operation.text("description") or item.text("description"),
            tags=tuple(tag.value for tag in operation.below("tags").items() if isinstance(tag.value, str)),
            parameters=self._parameters.read(item, operation, path),
            body=body,
            answers=self._answers.read(operation, self._types(operation, "produces")),
            security=self.security.read(operation),
            deprecated=bool(operation.flag("deprecated")),
            rate=read_rate(operation),
        )

    def _id(self, operation: Spot) -> str:
        name = operation.text("operationId")
        if name and self._ids.setdefault(name, operation.at) != operation.at:
            message = f"the operationId {brief(name)} is also used by {self._ids[name]}; both operations are kept"
            self._notices.warning(DUPLICATE_OPERATION_ID, message, operation, "Give one of them an id of its own.")
        return name

    def _types(self, operation: Spot, key: str) -> list[str]:
        """Return the media types of 2.0: those of the operation, else those of the description."""
        own = operation.value.get(key)
        given = own if own is not None else self._root.value.get(key)
        return list(filter(None, as_texts(given)))

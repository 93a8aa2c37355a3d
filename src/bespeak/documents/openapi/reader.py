"""Reader of OpenAPI descriptions: operations, servers, security and rate limits. No text makes it raise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from bespeak.contract.limits import SECONDS, Rate, parse_rate
from bespeak.documents.openapi.description import Description, Operation, SecurityScheme
from bespeak.documents.openapi.document_text import Notices, RefResolver, Spot, parse_document
from bespeak.documents.openapi.parameters import BodyReader, ParameterReader
from bespeak.documents.openapi.schema_conversion import SchemaReader
from bespeak.documents.rules import DUPLICATE_OPERATION_ID, NOT_IMPORTED, NOT_OPENAPI, UNCLEAR_SERVER, UNUSABLE_SCHEME
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.table import as_texts
from bespeak.text.source.tree import without_collections

# Names of the extension, in lower case and without hyphens.
_NAMES: Final = frozenset({"xratelimit", "xratelimits", "xratelimiting", "xthrottling", "xthrottle"})
_COUNTS: Final = ("limit", "requests", "count", "rate", "max", "calls", "maxrequests", "ratelimit")
_PERIODS: Final = ("period", "interval", "window", "unit", "per", "duration", "timeunit", "seconds")
_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "second", "seconds", "persecond", "1"), "s"),
    **dict.fromkeys(("m", "min", "minute", "minutes", "perminute", "60", "1m", "60s"), "min"),
    **dict.fromkeys(("h", "hour", "hours", "perhour", "3600", "1h"), "h"),
    **dict.fromkeys(("d", "day", "days", "perday", "86400", "1d"), "day"),
}
_TEXT: Final = re.compile(r"([0-9]{1,9})\s*(?:requests?|calls?|reqs?)?\s*(?:/|per)\s*([a-z]{1,8})", re.IGNORECASE)
_DEFAULT_UNIT: Final = "min"


def read_rate(spot: Spot) -> Rate | None:
    """Return the limit that an object of the description states in an extension; None if it states none."""
    given = spot.value if isinstance(spot.value, dict) else {}
    limits = [value for name, value in given.items() if _bare(name) in _NAMES]
    return _rate(limits[0]) if limits else None


def _bare(name: object) -> str:
    return str(name).lower().replace("-", "").replace("_", "")


def _rate(value: Any) -> Rate | None:
    if isinstance(value, dict):
        members = {_bare(key): inner for key, inner in value.items()}
        for unit in SECONDS:
            # {"perMinute": 60} and the like.
            named = next((key for key in members if _UNITS.get(key.removeprefix("requests")) == unit), None)
            if named is not None and named not in _PERIODS:
                return _of(members[named], unit)
        count = next((members[key] for key in _COUNTS if key in members), None)
        period = next((members[key] for key in _PERIODS if key in members), _DEFAULT_UNIT)
        return _of(count, _UNITS.get(str(period).lower().strip(), ""))
    if isinstance(value, str):
        found = _TEXT.search(value)
        return _of(found[1], _UNITS.get(found[2].lower(), "")) if found else _of(value.strip(), _DEFAULT_UNIT)
    return _of(value, _DEFAULT_UNIT)


def _of(count: object, unit: str) -> Rate | None:
    rate = parse_rate(f"{count}/{unit}") if not isinstance(count, bool) else ""
    return rate if isinstance(rate, Rate) else None


Alternatives = tuple[Mapping[str, tuple[str, ...]], ...]

_KINDS: Final = frozenset({"apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"})


class SecurityReader:
    def __init__(self, root: Spot, references: RefResolver, notices: Notices, *, swagger: bool) -> None:
        self._root = root
        self._references = references
        self._notices = notices
        declared = root.below("securityDefinitions") if swagger else root.below("components", "securitySchemes")
        self.schemes = {name: made for name, spot in declared.entries() if (made := self._scheme(name, spot))}
        self._whole = self._alternatives(root.below("security"))

    def read(self, operation: Spot) -> Alternatives:
        """Read the security requirements of an operation: its own, else those of the whole description."""
        has_own = operation.value.get("security") is not None
        return self._alternatives(operation.below("security")) if has_own else self._whole

    def _scheme(self, name: str, given: Spot) -> SecurityScheme | None:
        if (spot := self._references.follow(given)) is None:
            return None
        kind, scheme, place, parameter, description = spot.texts("type", "scheme", "in", "name", "description")
        kind, scheme = ("http", "basic") if kind == "basic" else (kind, scheme.lower())  # `basic` as 2.0 calls it
        fault = f"has the unknown type {brief(kind)}" if kind not in _KINDS else ""
        if kind == "apiKey" and (place not in {"header", "query", "cookie"} or not parameter):
            fault = "does not say where its key goes"
        if fault:
            self._notices.error(UNUSABLE_SCHEME, f"{brief(name)} {fault}, and is left out", spot)
            return None
        if kind == "http" and not scheme:
            self._notices.error(UNUSABLE_SCHEME, f"{brief(name)} does not name its scheme; bearer is assumed", spot)
            scheme = "bearer"
        return SecurityScheme(
            name=name,
            kind=kind,
            place=place if kind == "apiKey" else "",
            parameter=parameter if kind == "apiKey" else "",
            scheme=scheme if kind == "http" else "",
            description=description,
        )

    def _alternatives(self, spot: Spot) -> Alternatives:
        if spot.value is not None and not isinstance(spot.value, list):
            self._notices.error(WRONG_VALUE, f"`security` is {brief(spot.value)}, not a list", spot)
        found: list[dict[str, tuple[str, ...]]] = []
        for one in spot.items():
            if not isinstance(one.value, dict):
                self._notices.error(WRONG_VALUE, f"a requirement is {brief(one.value)}, not an object", one)
                continue
            if unknown := [name for name in one.value if name not in self.schemes]:
                message = f"the scheme {brief(unknown[0])} is not declared, and this alternative is left out"
                self._notices.error(UNUSABLE_SCHEME, message, one, "Declare it under components.securitySchemes.")
                continue
            found.append({name: as_texts(scopes) for name, scopes in one.value.items()})
        return tuple(found)


_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


class ServerReader:
    def __init__(self, root: Spot, base_url: str | None, notices: Notices) -> None:
        self._root = root
        self._base_url = base_url
        self._notices = notices
        self._known: dict[tuple[str, str], str | None] = {}

    def read(self, item: Spot, operation: Spot) -> str:
        """Return the base address of an operation, without a trailing slash; report if there is none."""
        for level in (operation, item, self._root):
            if level.value.get("servers") is None:
                continue
            listed = level.below("servers")
            key = listed.key
            if key not in self._known:
                self._known[key] = self._first(listed)
            if (base := self._known[key]) is not None:
                return base
        return self._absolute("/", self._root)

    def read_swagger(self, operation: Spot) -> str:
        """Return the base address of a 2.0 operation: schemes, host and basePath."""
        schemes = operation.value.get("schemes") or self._root.value.get("schemes")
        offered = [scheme.lower() for scheme in as_texts(schemes)]
        base = urlsplit(self._base_url or "")
        host = self._root.text("host") or base.netloc
        path = self._root.text("basePath")
        scheme = next((one for one in ("https", "http") if one in offered), base.scheme or "https")
        if not host or not _is_host(host):
            message = "no server is described, so the upstream's address is unknown"
            self._notices.warning(UNCLEAR_SERVER, message, self._root, _ADVICE)
            return ""
        return f"{scheme}://{host}/{path.strip('/')}".rstrip("/")

    def _first(self, listed: Spot) -> str | None:
        usable = [spot for spot in listed.items() if isinstance(spot.value, dict) and spot.text("url")]
        if not usable:
            if listed.value != []:
                self._notices.warning(UNCLEAR_SERVER, "`servers` names no server", listed)
            return None
        if len(usable) > 1:
            others = ", ".join(_shown(spot.text("url")) for spot in usable[1:4])
            taken = brief(_shown(usable[0].text("url")))
            message = f"{len(usable)} servers are described; {taken} is used, not {others[:200]}"
            advice = "Write another address into the endpoint files if you need it."
            self._notices.info(UNCLEAR_SERVER, message, listed, advice)
        server = usable[0]

        def default_of(found: re.Match[str]) -> str:
            variable = server.below("variables", found[1])
            values = variable.below("enum").value
            default = variable.text("default") or (str(values[0]) if isinstance(values, list) and values else "")
            if not default and "default" not in (variable.value or {}):
                message = f"{{{found[1][:80]}}} in the address of the server has no default"
                self._notices.warning(UNCLEAR_SERVER, message, server, "Write the address into the endpoint files.")
                return found[0]
            return default

        return self._absolute(_VARIABLE.sub(default_of, server.text("url")), server)

    def _absolute(self, url: str, at: Spot) -> str:
        try:
            whole = urljoin(self._base_url, url) if self._base_url else url
            parts = urlsplit(whole)
            host = parts.netloc
        except ValueError:
            whole, host, parts = url, "", None
        _, at_sign, host = host.rpartition("@")
        if at_sign:
            message = "the address of the server contains a user or password, which is left out"
            advice = "Send credentials as a header whose value is a variable."
            self._notices.warning(UNCLEAR_SERVER, message, at, advice)
        if parts is None or parts.scheme not in {"http", "https"} or not _is_host(host):
            message = f"the server {brief(_shown(url))} is not a valid http or https address"
            self._notices.warning(UNCLEAR_SERVER, message, at, _ADVICE)
            return ""
        return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


_ADVICE: Final = "Name the address of the upstream when you import."
_HOST: Final = re.compile(r"(?:[\w{}.~-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")


def _shown(url: str) -> str:
    """Remove user and password from an address."""
    return re.sub(r"//[^/@]*@", "//", url)


def _is_host(host: str) -> bool:
    """Return True if a text is a host name or IP address, with an optional port; variables are allowed."""
    found = _HOST.fullmatch(host)
    return found is not None and int(found[1] or 0) < 65_536


MAX_OPERATIONS: Final = 20_000
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


class OperationReader:
    def __init__(
        self, root: Spot, references: RefResolver, notices: Notices, *, version: tuple[int, int], base_url: str | None
    ) -> None:
        swagger = version[0] == 2
        schemas = SchemaReader(references, notices, modern=version >= (3, 1))
        self._root = root
        self._references = references
        self._notices = notices
        self._swagger = swagger
        self._parameters = ParameterReader(references, schemas, notices, swagger)
        self._bodies = BodyReader(references, schemas, notices, swagger)
        self._servers = ServerReader(root, base_url, notices)
        self.security = SecurityReader(root, references, notices, swagger=swagger)
        self._ids: dict[str, str] = {}

    def read(self) -> Iterator[Operation]:
        count = 0
        for path, item in self._items():
            for method in _METHODS:
                if item.value.get(method) is None:
                    continue
                operation = item.below(method)
                if not isinstance(operation.value, dict):
                    message = f"`{method}` is {brief(operation.value)}, not an object"
                    self._notices.error(WRONG_VALUE, message, operation)
                    continue
                count += 1
                if count > MAX_OPERATIONS:
                    message = f"there are more than {MAX_OPERATIONS:,} operations; the others are left out"
                    self._notices.error(NOT_IMPORTED, message, operation)
                    return
                yield self._operation(method.upper(), path, item, operation)

    def _items(self) -> Iterator[tuple[str, Spot]]:
        for written, given in self._root.below("paths").entries():
            if (item := self._path_item(given)) is None:
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
        if not isinstance(given.value.get("$ref"), str):
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
            message = "the callbacks of the operation are not imported"
            self._notices.info(NOT_IMPORTED, message, operation.below("callbacks"))
        name, summary, description = operation.texts("operationId", "summary", "description")
        if name and self._ids.setdefault(name, operation.at) != operation.at:
            message = f"the operationId {brief(name)} is also used by {self._ids[name]}; both operations are kept"
            self._notices.warning(DUPLICATE_OPERATION_ID, message, operation, "Give one of them an id of its own.")
        shared_summary, shared_description = item.texts("summary", "description")
        return Operation(
            method=method,
            path=path,
            base=base,
            pointer=operation.at,
            operation_id=name,
            summary=summary or shared_summary,
            description=description or shared_description,
            tags=as_texts(operation.value.get("tags")),
            parameters=self._parameters.read(item, operation, path),
            body=body,
            answers=self._bodies.read_responses(operation, self._types(operation, "produces")),
            security=self.security.read(operation),
            deprecated=bool(operation.flag("deprecated")),
            rate=read_rate(operation),
        )

    def _types(self, operation: Spot, key: str) -> list[str]:
        """Return the media types of 2.0: those of the operation, else those of the description."""
        if not self._swagger:
            return []
        own = operation.value.get(key)
        return list(filter(None, as_texts(own if own is not None else self._root.value.get(key))))


_VERSION: Final = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,3}))?(?:[.-].*)?", re.DOTALL)
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)


def read_description(
    text: bytes | str, source: str, *, base_url: str | None = None
) -> tuple[Description | None, list[Diagnostic]]:
    """Read the description in a text and collect findings; return None if it cannot be read.

    An error beside a description means that one part could not be read. References to files beside `source`, the file
    or address of the text, are followed. Relative addresses are resolved against `base_url`, or a source on the web.
    """
    with without_collections():
        return _read(text, source, base_url or (source if _WEB.match(source) else None))


def _read(text: bytes | str, source: str, base_url: str | None) -> tuple[Description | None, list[Diagnostic]]:
    document, found = parse_document(text, source, _local(source))
    if document is None:
        return None, found
    notices = Notices(source)
    notices.pass_on(found)
    root = Spot(document.data, document)
    if (version := _version(root, notices)) is None:
        return None, notices.all()
    paths = root.below("paths")
    if not isinstance(paths.value, dict):
        said = "is missing" if paths.value is None else f"is {brief(paths.value)}, not an object"
        if root.value.get("webhooks") and paths.value is None:
            said = "is missing, and webhooks are not imported"
        notices.error(NOT_OPENAPI, f"`paths` {said}", root, "A description without operations has nothing to import.")
        return None, notices.all()
    for name in ("webhooks", "x-webhooks"):
        if isinstance(root.value.get(name), dict) and root.value[name]:
            count = len(root.value[name])
            message = f"{count} webhook{' is' if count == 1 else 's are'} not imported"
            notices.info(NOT_IMPORTED, message, root.below(name))
    reader = OperationReader(root, RefResolver(document, notices), notices, version=version, base_url=base_url)
    if not (operations := tuple(reader.read())):
        notices.warning(NOT_OPENAPI, "no path has an operation", paths)
    info = root.below("info")
    title, number, text = info.texts("title", "version", "description")
    made = Description(
        openapi=root.text("openapi") or root.text("swagger"),
        title=title,
        version=number,
        description=text,
        contact=next(filter(None, info.below("contact").texts("email", "url")), ""),
        source=source,
        rate=read_rate(root) or read_rate(info),
        operations=operations,
        schemes=reader.security.schemes,
    )
    return made, notices.all()


def _version(root: Spot, notices: Notices) -> tuple[int, int] | None:
    written = root.text("openapi") or root.text("swagger")
    if (found := _VERSION.fullmatch(written)) is None:
        said = f"has the version {brief(written)}" if written else "has neither `openapi` nor `swagger`"
        advice = 'A description starts with openapi: "3.1.0" or the like.'
        notices.error(NOT_OPENAPI, f"the document {said}", root, advice)
        return None
    version = (int(found[1]), int(found[2] or 0))
    if version[0] == 2:
        return (2, 0)
    if version[0] != 3:
        notices.error(NOT_OPENAPI, f"version {brief(written)} is not understood", root, "Convert it to 3.1 or 3.0.")
        return None
    if version > (3, 1):
        notices.info(NOT_OPENAPI, f"version {brief(written)} is read as 3.1", root)
    return version


def _local(source: str) -> Path | None:
    if _WEB.match(source):
        return None
    try:
        path = Path(source)
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None

"""Results of MCP tools: shaped as the caller asks, cut to a length, and kept so that the rest can be read."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import CONTENT, META, PARTIAL, RESULT, Tool, blocks_in, result_of, text_of
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.schema.view import Members
from bespeak.contract.truncation import cut, cut_to_fit
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.protocol.exchange.token_hints import COMPACT, FIELDS, TokenHints
from bespeak.runtime.route import Shaping
from bespeak.text.language.names import CURSORS, LIMITS, OFFSETS, PAGES, join, stems

Result = dict[str, Any]
LIFETIME: Final = 900.0  # seconds for which a result is kept
MOST_KEPT_RESULTS: Final = 64
MOST_KEPT_CHARACTERS: Final = 16_000_000  # bounds of all kept results together
FIELDS_MEMBER: Final = f"{META}{FIELDS} in the _meta of the call"
MOST_ERROR: Final = 10_000  # characters of a refusal: clients cut longer ones themselves, in the middle
_MARKER: Final = 2_000  # characters for the marker beside a cut output
_MOST_FIELDS: Final = 3


@dataclass(frozen=True, slots=True)
class _KeptResult:
    text: str
    media_type: str
    caller: str
    ends: float


class KeptResults:
    def __init__(self, server_id: str, part: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep results of a service; each can be read whole, or in parts of `part` characters."""
        self._place = f"bespeak://{quote(server_id.lower(), safe=':[]')}/results/"
        self._part = part
        self._clock = clock
        self._kept: dict[str, _KeptResult] = {}
        self._size = 0

    def keep(self, text: str, media_type: str, caller: str) -> str | None:
        """Keep a result for its caller; return its URI, or None if it is too large."""
        if len(text) > MOST_KEPT_CHARACTERS // 4:
            return None
        now = self._clock()
        while self._kept and (
            len(self._kept) >= MOST_KEPT_RESULTS
            or self._size + len(text) > MOST_KEPT_CHARACTERS
            or next(iter(self._kept.values())).ends <= now
        ):
            self._drop(next(iter(self._kept)))
        key = secrets.token_urlsafe(24)
        self._kept[key] = _KeptResult(text, media_type, caller, now + LIFETIME)
        self._size += len(text)
        return self._place + key

    def parts(self, text: str) -> int:
        return -(-len(text) // self._part)

    def read(self, uri: str, caller: str) -> dict[str, Any] | None:
        """Return the contents of a kept result, or of a part; None if there is none for the caller."""
        if not uri.startswith(self._place):
            return None
        key, _, number = uri.removeprefix(self._place).partition("/")
        kept = self._kept.get(key)
        if kept is None or kept.caller != caller:
            return None
        if kept.ends <= self._clock():
            self._drop(key)
            return None
        text, media_type = kept.text, kept.media_type
        if number:
            if not (number.isascii() and number.isdecimal() and 1 <= int(number[:9]) <= self.parts(text)):
                return None
            text, media_type = text[(int(number) - 1) * self._part : int(number) * self._part], "text/plain"
        return {"uri": uri, "mimeType": media_type, "text": text}

    def _drop(self, key: str) -> None:
        self._size -= len(self._kept.pop(key).text)


@dataclass(frozen=True, slots=True)
class PagingParameters:
    """Names of the parameters; empty for one that there is not."""

    limit: str = ""
    offset: str = ""
    onward: str = ""  # parameter that names the next page: a cursor, or the number of the page
    first: int = 0  # offset of the first element

    def advise(self, arguments: Mapping[str, Any], kept: int) -> str | None:
        """Say how to get the rest of a list of which some elements were kept; None if there is no way."""
        if not kept:
            return None
        given = arguments.get(self.offset, self.first)
        if self.offset and isinstance(given, int):
            return f"Call again with {self.offset}={given + kept} for the elements that follow."
        if not self.limit:
            return None
        then = f", and then page on with {self.onward}" if self.onward else ""
        return f"Call again with {self.limit}={kept} or less{then}."


def paging_of(endpoint: Endpoint) -> PagingParameters:
    named: dict[str, Any] = {}
    for name, schema in endpoint.input_schema.get("properties", {}).items():
        term = join(stems(name))
        is_count = isinstance(schema, dict) and schema.get("type") == "integer"
        for kind, terms in (("limit", LIMITS), ("offset", OFFSETS), ("onward", CURSORS | PAGES)):
            if term in terms and kind not in named and (is_count or kind == "onward"):
                named[kind] = name
                first = schema.get("default") if kind == "offset" else None
                named |= {"first": first} if isinstance(first, int) else {}
    return PagingParameters(**named)


@dataclass(frozen=True, slots=True)
class WantedShape:
    hints: TokenHints
    fields: str


@lru_cache(maxsize=1024)
def shaping_of(tool: Tool) -> Shaping:
    output = compile_schema(tool.endpoint.output_schema)
    return Shaping(tool.endpoint, Validator(b"{}") if isinstance(output, Fault) else output)


def read_shape(tool: Tool, asked: Mapping[str, Any]) -> WantedShape | Outcome | None:
    """Read `fields` and `compact`; return None without them, or a refusal."""
    fields, compact = asked.get(FIELDS), asked.get(COMPACT)
    if fields is None and compact is None:
        return None
    if isinstance(fields, list) and all(isinstance(one, str) for one in fields):
        fields = ",".join(fields)
    wrong = FIELDS if not isinstance(fields, str | None) else COMPACT if not isinstance(compact, bool | None) else None
    if wrong is not None:
        wanted = "a list of names" if wrong == FIELDS else "true or false"
        message = f"{wrong} must be {wanted}."
        return refused(Refused(status.BAD_REQUEST, "invalid-token-hint", message, {"parameter": wrong}))
    given = {} if fields is None else {FIELDS: fields}
    hints = shaping_of(tool).read({**given, COMPACT: "true" if compact else "false"})
    return refused(hints) if isinstance(hints, Refused) else WantedShape(hints, fields or "")


def shape_in(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a call's `_meta` that ask for a shape."""
    return {name: meta[f"{META}{name}"] for name in (FIELDS, COMPACT) if f"{META}{name}" in meta}


class Results:
    """Writes the results of one server: every way out leads through `write`."""

    def __init__(self, most: int, kept: KeptResults | None) -> None:
        """Bound results to a number of characters. `kept` is None if resources would not be found again."""
        self._most = most
        self.kept = kept
        self.fields = FIELDS_MEMBER  # where a caller asks for some members only, in words

    def write(
        self,
        tool: Tool,
        outcome: Outcome,
        arguments: Mapping[str, Any] | None = None,
        caller: str = "",
        shape: WantedShape | None = None,
    ) -> dict[str, Any]:
        """Build the result of a call by a caller, in the shape that was asked for."""
        result = result_of(tool, outcome)
        if shape is not None and not result["isError"]:
            outcome, result = self._shaped(tool, outcome, result, shape)
        if result["isError"]:
            text = result["content"][0]["text"]
            if len(text) <= MOST_ERROR:
                return result
            # Its code, message and remedy are short, so details are what is lost.
            found = cut(msgspec.json.decode(text), MOST_ERROR, shaping_of(tool).members.anything)
            return {**result, "content": [{"type": "text", "text": msgspec.json.encode(found.output).decode()}]}
        if sum(len(text_of(block)) for block in result["content"]) > self._most:
            return self._bound(tool, outcome, result, arguments or {}, caller)
        return result

    def _shaped(self, tool: Tool, outcome: Outcome, result: Result, shape: WantedShape) -> tuple[Outcome, Result]:
        """Apply what the caller has asked for. A selection that lacks required members is a partial result."""
        output = shaping_of(tool).apply(shape.hints, outcome.output)
        less = replace(outcome, output=output)
        if tool.output is None or tool.output.is_valid({RESULT: output} if tool.wraps else output):
            return less, result_of(tool, less)
        return less, {**result, **_contents({PARTIAL: {"output": output, "fields": shape.fields}})}

    def _bound(self, tool: Tool, outcome: Outcome, result: Result, arguments: Mapping[str, Any], caller: str) -> Result:
        whole, media = result["content"][0].get("text", ""), []
        if tool.blocks and blocks_in(outcome.output) is not None:
            # Anything but text stays whole; the binding bounds it.
            media = [block for block in result["content"] if not text_of(block)]
            texts = [block for block in result["content"] if text_of(block)]
            outcome = replace(outcome, output={**outcome.output, CONTENT: texts})
            whole = msgspec.json.encode(outcome.output).decode()
        found = cut_to_fit(outcome.output, self._most - _MARKER, shaping_of(tool).members)
        paged = uri = None
        if len(found.gaps) == 1 and found.gaps[0].what == "elements":
            paged = paging_of(tool.endpoint).advise(arguments, found.gaps[0].kept)
        if paged is None and self.kept is not None:
            uri = self.kept.keep(whole, "text/plain" if isinstance(outcome.output, str) else "application/json", caller)
        partial = {"output": found.output, "left_out": found.left_out, "rest": self._rest(tool, paged, uri, whole)}
        bounded = _contents({PARTIAL: partial})
        return {**result, **bounded, "content": [*bounded["content"], *media]}

    def _rest(self, tool: Tool, paged: str | None, uri: str | None, whole: str) -> str:
        if paged is not None:
            return paged
        names = list(islice(_fields(shaping_of(tool).members), _MOST_FIELDS))
        ways = [f"Ask for some members only, with {self.fields}: {', '.join(names)}."] if names else []
        if uri is not None and self.kept is not None:
            parts = self.kept.parts(whole)
            ways.append(
                f"Read the resource {uri} for all {len(whole)} characters, or {uri}/1 to {uri}/{parts} for parts, "
                f"within {LIFETIME // 60:.0f} minutes."
            )
        return " ".join(ways) or "Call again with arguments that match less."


def _fields(members: Members) -> Iterator[str]:
    for name in members.reachable:
        inner = members.step(name)
        within = [] if inner is None else inner.reachable
        yield from (f"{name}.{one}" for one in within) if within else (name,)


def _contents(structured: dict[str, Any]) -> dict[str, Any]:
    text = msgspec.json.encode(structured).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}

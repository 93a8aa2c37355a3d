"""Import of an MCP server: its tools, prompts and resources as endpoints in front of it, with every guess (AGIS C.3).

What a person has reviewed after an earlier import stays; a tool that has changed is reviewed again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import DeclaredError, Endpoint, Semantic
from bespeak.contract.grammar.syntax import leaking_segment
from bespeak.contract.handler import TOOL_ERROR, McpServer, McpTool, schema_digest
from bespeak.contract.mcp_tool import without_content
from bespeak.documents.adoption.deployment import Imported, make_deployment
from bespeak.documents.adoption.evidence import change_signs, deeds, program_field, sentences, shape_errors, takes_back
from bespeak.documents.adoption.facade import Candidate, Facade, Guess, ImportOrigin, LeftOut, Variable
from bespeak.documents.adoption.judgement import Judgement, choose_scopes, judge_all
from bespeak.documents.adoption.sanitizer import first_sentence, plain_text
from bespeak.documents.adoption.verb_words import base, is_verb
from bespeak.documents.agis.canonical import write_yaml
from bespeak.documents.mcp.tools import ListedTool, Offer, ToolList, fit_input, fit_output
from bespeak.documents.projections.agis_document import complete_agis, project_agis
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.identifiers import unused
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.injection import instruction
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.names import MANNERS, hyphenated, main_class, singular, words
from bespeak.text.language.segment import judge_segment
from bespeak.text.reading.text_file import read_text

_NOTHING: Final = frozenset({"api", "mcp", "rest", "tool", "tools"})  # prefixes that do not name a service
_FEW: Final = 2  # tools that a prefix must have in common
_LONGEST: Final = 2  # words of a prefix: `browserbase_stagehand_act`


class ToolName(NamedTuple):
    namespace: str  # service that the name begins with, in words joined by hyphens; empty if it begins with none
    bare: str  # the rest in snake_case, without articles: `create_comment` of `API-create-a-comment`


def split_names(names: Sequence[str], title: str = "") -> list[ToolName]:
    """Split the names of all tools of one server with a title.

    A prefix names a service if all tools have it, or if in most of its tools a verb and a thing follow it:
    `jira_get_issue`. The first word of `collection-schema` and `screencast_start` is a thing.
    """
    parts = [words(name) for name in names]
    prefixes = _prefixes(parts, frozenset(words(title)))
    return [_split(one, prefixes) for one in parts]


def _prefixes(parts: Sequence[tuple[str, ...]], title: frozenset[str]) -> frozenset[tuple[str, ...]]:
    rests: defaultdict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for one in parts:
        for length in range(1, min(_LONGEST, len(one) - 1) + 1):
            rests[one[:length]].append(one[length:])
    return frozenset(
        prefix
        for prefix, after in rests.items()
        if len(after) >= _FEW
        and MANNERS.isdisjoint(prefix)
        and _names_service(prefix, after, shared=len(after) == len(parts), titled=title.issuperset(prefix))
    )


def _names_service(prefix: tuple[str, ...], rests: Sequence[tuple[str, ...]], *, shared: bool, titled: bool) -> bool:
    acting = [rest for rest in rests if _acts(rest[0])]
    follows = any(len(rest) > 1 for rest in acting)
    if len(prefix) > 1:
        # The second word may be the thing: browser_mouse_down.
        return len(acting) == len(rests) and all(len(rest) > 1 for rest in rests) and not any(map(_acts, prefix))
    if follows and 2 * len(acting) >= len(rests):
        return not _acts(prefix[-1]) or (titled and shared)
    # Tools that have only their thing in common are not of a service of that name: user_create, user_delete.
    return shared and (follows or not acting) and (titled or not any(map(_acts, prefix)))


def _acts(word: str) -> bool:
    """Return True if a word before others is rather a verb: `list`, `search`, `start`."""
    counts = lexicon().counts(word)
    return is_verb(word) or word == "list" or (base(word) == word and counts.verb > counts.noun)


def _split(parts: tuple[str, ...], prefixes: frozenset[tuple[str, ...]]) -> ToolName:
    cut = next((length for length in range(_LONGEST, 0, -1) if parts[:length] in prefixes), 0)
    *inner, last = parts[cut:] or ("",)
    rest = [part for part in inner if part not in {"a", "an", "the"}] + [last]
    return ToolName("-".join([part for part in parts[:cut] if part not in _NOTHING]), "_".join(rest))


_SEEN: Final = 4_000  # characters of a description that are searched
_PURPOSE: Final = re.compile(r"^\W*(?:purpose|what it does|overview|summary)\b\W*$", re.IGNORECASE | re.MULTILINE)
"""A heading before the sentence that matters."""
_TOOL_TEXT_FEW: Final = 3  # words from which a line counts as a sentence


def goal(description: str) -> str:
    """Return the first sentence that says what a tool does, without headings, bullets and labels before it."""
    first = ""
    purpose = _PURPOSE.search(description[:_SEEN])
    for line in sentences(description[purpose.end() :] if purpose else description):
        sentence = first_sentence(line)
        if len(sentence.split()) < _TOOL_TEXT_FEW and not head_verbs(sentence):
            continue
        if head_verbs(sentence):
            return sentence
        first = first or sentence
    return first


_ARITHMETIC: Final = {"add": "sum", "sum": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient"}


def as_candidates(listed: ToolList) -> list[tuple[Candidate, ToolName]]:
    """Convert the tools of a server to the form that the importers' common judgement needs."""
    names = split_names([tool.name for tool in listed.tools], listed.title)
    siblings = _ToolSiblings(names)
    several = len({name.namespace for name in names if name.namespace}) > 1
    pairs = zip(listed.tools, names, strict=True)
    return [(_candidate(tool, name, siblings, several=several), name) for tool, name in pairs]


def _candidate(tool: ListedTool, name: ToolName, siblings: _ToolSiblings, *, several: bool) -> Candidate:
    hints = tool.hints
    fields = _fields(tool)
    # From numbers alone `add` calculates the sum; elsewhere it means to create.
    numbers = all(isinstance(part, Mapping) and part.get("type") in ("integer", "number") for part in fields.values())
    worked_out = _ARITHMETIC.get(name.bare.removesuffix("_numbers"), "") if fields and numbers else ""
    summary = goal(tool.description) or goal(tool.title)
    return Candidate(
        name=f"calculate_{worked_out}" if worked_out else name.bare,
        full_name=tool.name,
        name_kind="the name",
        summary=f"Calculate the {worked_out} of the numbers" if worked_out else summary,
        description=tool.description,
        tags=(name.namespace,) if name.namespace else (),
        service=name.namespace if several else "",
        returns_list=_is_list(tool.output_schema),
        signs=tuple(_signs(tool, summary)),
        program=program_field(fields, tool.description, reads=False, read_only=hints.get("readOnlyHint") is True),
        has_readable_state=siblings.has_readable_state(name.bare),
        is_undone=siblings.is_undone(name.bare),
        read_only=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
    )


def _signs(tool: ListedTool, summary: str) -> Iterator[str]:
    """Yield reasons to believe that a tool changes something, beside its name and the sentence that says its goal."""
    for text in (tool.description, tool.title):
        others = "\n".join(line for line in sentences(text) if first_sentence(line) != summary)
        yield from (f"its description says '{deed.words}'" for deed in deeds(others, broad=True))
    yield from change_signs(_fields(tool), reads=False)


def _fields(tool: ListedTool) -> Mapping[str, Any]:
    properties = tool.input_schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _is_list(schema: Mapping[str, Any] | None) -> bool:
    if schema is None or schema.get("type") == "array":
        return schema is not None
    properties = schema.get("properties")
    parts = list(properties.values()) if isinstance(properties, Mapping) else []
    return len(parts) == 1 and isinstance(parts[0], Mapping) and parts[0].get("type") == "array"


class _ToolSiblings:
    def __init__(self, names: Sequence[ToolName]) -> None:
        self._deeds: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for name in names:
            for thing, verb in _deeds(name.bare):
                self._deeds[thing].add(verb)

    def has_readable_state(self, name: str) -> bool:
        """Return True if another tool returns what this one overwrites."""
        return any(main_class(other) == "READ" for thing, _ in _deeds(name) for other in self._deeds[thing])

    def is_undone(self, name: str) -> bool:
        """Return True if another tool deletes what this one makes, or reverses what it does."""
        return any(
            takes_back(other, verb) or (main_class(verb) == "CREATE" and main_class(other) == "DELETE")
            for thing, verb in _deeds(name)
            for other in self._deeds[thing]
        )


def _deeds(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the first and the last word of a name that may be its verb, with the thing that the others name."""
    parts = tuple(singular(part) for part in words(name))
    if len(parts) > 1:
        yield parts[1:], parts[0]
        yield parts[:-1], parts[-1]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An endpoint that a person has reviewed, and its file."""

    endpoint: Endpoint
    file: str  # path of the file in the folder
    text: str

    def renew(self, made: Facade) -> Facade:
        """Return the facade of the same tool as it is now, with the reviewed decisions.

        If its schemas are those that were reviewed, the file stays as it is unless the server is reached in another
        way. Otherwise it waits for a review again.
        """
        new, old = made.endpoint, self.endpoint
        assert isinstance(new.handler, McpTool)
        assert isinstance(old.handler, McpTool)
        # Only tools have a digest.
        same_input = old.handler.mcp.input_digest == new.handler.mcp.input_digest and (
            bool(new.handler.mcp.tool) or old.input_schema == new.input_schema
        )
        # Earlier imports did not declare the content blocks of a tool without a schema.
        undeclared = {"type": "object"} == old.output_schema == without_content(new.output_schema)
        if same_input and (old.output_schema == new.output_schema or undeclared):
            handler = replace(old.handler, mcp=new.handler.mcp)
            kept = handler == old.handler
            endpoint = replace(old, handler=handler)
            return replace(made, endpoint=endpoint, guesses=(), file=self.file, text=self.text if kept else "")
        text, why = "the schemas of the tool as they are now", "they have changed since the review"
        guess = Guess("/input_schema", text, why, 0.5, risk="high")
        endpoint = replace(old, handler=new.handler, input_schema=new.input_schema, reviewed=False)
        endpoint = replace(endpoint, output_schema=new.output_schema)
        return replace(made, endpoint=endpoint, guesses=(guess,), file=self.file, text="")


def reviewed_tools(endpoints: Iterable[Endpoint], folder: Path) -> Mapping[str, Reviewed]:
    """Return the reviewed endpoints of a folder by the tools that they call."""
    found: dict[str, Reviewed] = {}
    for endpoint in endpoints:
        if not isinstance(endpoint.handler, McpTool) or not endpoint.reviewed or endpoint.location is None:
            continue
        path = Path(endpoint.location.file)
        text = read_text(path)
        if not isinstance(text, Diagnostic) and path.resolve().is_relative_to(folder.resolve()):
            file = path.resolve().relative_to(folder.resolve()).as_posix()
            called = endpoint.handler.mcp
            found.setdefault(called.tool or called.named, Reviewed(endpoint, file, text))
    return found


_TIMEOUT: Final = 60.0
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")  # tool names that AGIS 6.2 allows and that models' services take


def make_facades(
    listed: ToolList, server: McpServer, catalog: Catalog, reviewed: Mapping[str, Reviewed] | None = None
) -> tuple[list[Facade], list[LeftOut]]:
    """Make the endpoints of all tools, in their order; keep the decisions of `reviewed`, endpoints by their tools."""
    known = reviewed or {}
    left_out: list[LeftOut] = []
    named: list[ListedTool] = []
    for place, tool in enumerate(listed.tools, 1):
        if (spoken := instruction(tool.name, field=True)) is None:
            named.append(tool)
        else:
            left_out.append(LeftOut(f"tool {place} of the list", f"its name is a text that {spoken.kind}"))
    listed = replace(listed, tools=tuple(named))
    pairs = as_candidates(listed)
    occupied = [known[tool.name].endpoint.key for tool in listed.tools if tool.name in known]
    judgements = judge_all([candidate for candidate, _ in pairs], catalog, occupied)
    names = tool_names([tool.name for tool in listed.tools])
    maker = _ToolEndpointMaker(listed, server)
    facades: list[Facade] = []
    for tool, (_, name), judgement, published in zip(listed.tools, pairs, judgements, names, strict=True):
        try:
            made = maker.make(tool, judgement, published, name.namespace)
            facades.append(known[tool.name].renew(made) if tool.name in known else made)
        except Exception as error:  # noqa: BLE001 - one tool must not stop the import of the others
            why = f"bespeak failed with {type(error).__name__}: {brief(str(error))}; this is a bug, please report it"
            left_out.append(LeftOut(tool.name, why))
    return facades, left_out


def tool_names(names: Sequence[str]) -> list[str]:
    """Return the mcp_tool_name of each tool: its own name if AGIS 6.2 allows that, else its words in snake_case."""
    taken = {name for name in names if _NAME.fullmatch(name)}
    found: list[str] = []
    for name in names:
        chosen = name
        if _NAME.fullmatch(name) is None:
            chosen = unused("_".join(words(name))[:64].strip("_") or "tool", taken)
            taken.add(chosen)
        found.append(chosen)
    return found


class _ToolEndpointMaker:
    def __init__(self, listed: ToolList, server: McpServer) -> None:
        self._title = listed.title
        self._server = server
        self._variables = tuple(Variable(name, "a variable that the MCP server needs") for name in server.variables)

    def make(self, tool: ListedTool, judgement: Judgement, published: str, namespace: str) -> Facade:
        given, lost = fit_input(tool.input_schema)
        returned, unsaid = fit_output(tool.output_schema)
        has_credential = bool(self._variables or self._server.token_file)
        scopes, scope_guess = choose_scopes(self._title, judgement.semantic.impact, has_credential=has_credential)
        errors = shape_errors(judgement.candidate, has_credential=has_credential).errors
        handler = McpTool(
            mcp=replace(self._server, tool=tool.name, input_digest=schema_digest(tool.input_schema)),
            timeout_seconds=_TIMEOUT,
        )
        endpoint = Endpoint(
            method=judgement.method,
            path=judgement.path.path,
            description=judgement.description,
            semantic=replace(judgement.semantic, mcp_tool_name=published),
            input_schema=given,
            output_schema=returned,
            errors=(DeclaredError(TOOL_ERROR, "The tool reports a failure; the message says which."), *errors),
            handler=handler,
            namespace=namespace or None,
            required_scopes=scopes,
            reviewed=False,
        )
        losses = (*_losses("/input_schema", lost), *_losses("/output_schema", unsaid))
        guesses = (*judgement.guesses, *scope_guess, *losses)
        if published != tool.name:
            why = f"the name {brief(tool.name)} is not one that AGIS 6.2 allows"
            guesses = (*guesses, Guess("/semantic/mcp_tool_name", f"published as {published}", why, 0.9))
        return Facade(judgement.candidate, endpoint, guesses, self._variables)


def _losses(at: str, lost: Sequence[str]) -> Iterator[Guess]:
    for loss in lost:
        unsafe = "text" in loss or "characters" in loss or "encoded" in loss
        why = "the server's text is not fit for a contract" if unsafe else "it cannot be served as it is"
        yield Guess(at, f"without {loss}", why, 0.5, risk="high" if unsafe else "medium")


MOST_ARGUMENTS: Final = 40  # arguments of a prompt
LONGEST_URI: Final = 2_000
_METHOD: Final = "FETCH"
_LONGEST_TEXT: Final = 400
_TEXT: Final = {"type": "string", "maxLength": 20_000}
_PROMPTED: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "description": {"type": "string"},
        "messages": {"type": "array", "items": {"type": "object", "required": ["role", "content"]}},
    },
    "required": ["messages"],
}
_READ: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"contents": {"type": "array", "items": {"type": "object", "required": ["uri"]}}},
    "required": ["contents"],
}


def make_offers(
    offers: tuple[Offer, ...], server: McpServer, title: str, catalog: Catalog, reviewed: Mapping[str, Reviewed]
) -> tuple[list[Facade], list[LeftOut]]:
    """Make the endpoints of prompts and resources; `reviewed` are those of an earlier import by `kind key`."""
    facades: list[Facade] = []
    left_out: list[LeftOut] = []
    taken = {one.endpoint.path for one in reviewed.values()}
    for offer in offers:
        if fault := _fault(offer):
            left_out.append(LeftOut(f"the {offer.kind} {offer.name[:80]}", fault))
            continue
        path = unused(_path(offer, catalog), taken, "-")
        taken.add(path)
        made = _facade(offer, path, server, title)
        known = reviewed.get(f"{offer.kind} {offer.key}")
        facades.append(made if known is None else known.renew(made))
    return facades, left_out


def _fault(offer: Offer) -> str:
    if not offer.key or not offer.key.isprintable() or len(offer.key) > LONGEST_URI:
        return f"its name must be printable text of at most {LONGEST_URI} characters"
    names = [name for name, _, _ in offer.arguments]
    if len(names) > MOST_ARGUMENTS or len(set(names)) != len(names) or not all(name.isprintable() for name in names):
        return f"it must have at most {MOST_ARGUMENTS} arguments with different names"
    return ""


def _path(offer: Offer, catalog: Catalog) -> str:
    slug = hyphenated(offer.name)[:48].strip("-") or offer.kind
    # AGTP-API 5.1: no segment is a method, or says an action. The prompt keeps its name for clients of MCP.
    verdict = judge_segment(slug, _METHOD)
    is_fine = leaking_segment(f"/{slug}", catalog.names) is None and (verdict is None or verdict.tier != "error")
    return f"/{offer.kind}s/{slug if is_fine else 'entry'}"


def _facade(offer: Offer, path: str, server: McpServer, title: str) -> Facade:
    kind = f"the {offer.kind}"
    candidate = Candidate(name=offer.name, full_name=offer.key, name_kind=kind, description=offer.description)
    variables = tuple(Variable(name, "a variable that the MCP server needs") for name in server.variables)
    has_credential = bool(variables or server.token_file)
    scopes, scope_guess = choose_scopes(title, "informational", has_credential=has_credential)
    named = plain_text(offer.title or offer.name, 80)
    said = plain_text(offer.description, _LONGEST_TEXT)
    shown = named.text or offer.kind
    described = {name: plain_text(text, _LONGEST_TEXT) for name, text, _ in offer.arguments}
    called = replace(server, prompt=offer.name) if offer.kind == "prompt" else replace(server, resource=offer.uri)
    endpoint = Endpoint(
        method=_METHOD,
        path=path,
        description=said.text or f"Returns the {offer.kind} {shown}.",
        semantic=Semantic(
            intent=f"Fetch the {offer.kind} {shown}.",
            actor="agent",
            outcome=f"The {'messages' if offer.kind == 'prompt' else 'contents'} are returned.",
            capability="retrieval",
            confidence=0.8,
            impact="informational",
            is_idempotent=True,
        ),
        input_schema={
            "type": "object",
            "properties": {
                name: {**_TEXT, **({"description": text.text} if text.text else {})} for name, text in described.items()
            },
            "required": [name for name, _, required in offer.arguments if required],
            "additionalProperties": False,
        },
        output_schema=dict(_PROMPTED if offer.kind == "prompt" else _READ),
        errors=(
            DeclaredError(TOOL_ERROR, f"The server refuses the {offer.kind}; the message says why."),
            *shape_errors(candidate, has_credential=has_credential).errors,
        ),
        handler=McpTool(mcp=called, timeout_seconds=_TIMEOUT),
        namespace=f"{offer.kind}s",
        required_scopes=scopes,
        reviewed=False,
    )
    texts = [("/description", said), ("/semantic/intent", named)]
    texts += [("/input_schema", text) for text in described.values()]
    why = "the server's text is not fit for a contract"
    unsafe = (Guess(at, f"without {text.fault}", why, 0.5, risk="high") for at, text in texts if text.fault)
    return Facade(candidate, endpoint, (*scope_guess, *unsafe), variables)


DOCUMENT: Final = "service.agis"
COMMAND: Final = "mcp"  # subcommand of `bespeak import`


def import_tools(
    listed: ToolList, server: McpServer, notes: Sequence[LeftOut] = (), reviewed: Mapping[str, Reviewed] | None = None
) -> Imported:
    """Make the deployment of a server: endpoint files, and the same contract as an AGIS document (AGIS C.3).

    `notes` lists what its reader skipped or changed. `reviewed` are endpoints of an earlier import by their tools.
    """
    catalog = load_bundled()
    facades, left_out = make_facades(listed, server, catalog, reviewed)
    offered, unusable = make_offers(listed.offers, server, listed.title, catalog, reviewed or {})
    facades, left_out = [*facades, *offered], [*left_out, *unusable]
    origin = ImportOrigin(
        command=COMMAND,
        form="the tools of an MCP server",
        title=listed.title,
        version=listed.version,
        description=listed.instructions,
        source=listed.source,
    )
    imported = make_deployment(origin, facades, left_out, notes)
    if facades:
        head = f"# {origin.made_by}. A copy of the endpoint files. After a review, use `bespeak export agis`.\n"
        imported.files[DOCUMENT] = head + write_yaml(complete_agis(project_agis(imported.service), catalog))
    return imported

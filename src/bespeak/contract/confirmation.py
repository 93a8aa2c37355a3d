"""Confirmation of calls: which calls wait for it, what a composite would do, and the question that a person answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.contract.handler import Composition
from bespeak.contract.policy import Policies
from bespeak.contract.procedure import MOST_ITEMS, find_wrong_step
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.orchestrate import LISTS, nested_steps
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.text.diagnostics.diagnostic import printable


def needs_confirmation(endpoint: Endpoint, policies: Policies) -> bool:
    """Return True if calls of an endpoint need a confirmation: its own setting wins over the policy."""
    if endpoint.confirm is not None:
        return endpoint.confirm
    if endpoint.passes_on or isinstance(endpoint.handler, Composition):
        return False  # the policy applies to each of its steps
    # Confirming is irreversible too; if it needed a confirmation, nothing could ever be confirmed.
    return policies.confirm_irreversible and endpoint.semantic.impact == "irreversible" and not endpoint.is_basic


def asks_person(endpoint: Endpoint, policies: Policies) -> bool:
    """Return True if a person confirms a call of a model: it cannot be undone, or needs a confirmation anyway."""
    irreversible = endpoint.semantic.impact == "irreversible" and endpoint.confirm is None
    return irreversible or needs_confirmation(endpoint, policies)


MOST_LISTED: Final = 2_000  # calls of one composite, those of the composites that it calls included
UNKNOWN: Final = "unknown impact"  # impact of a call that reaches nothing here
_NAME: Final = re.compile(r"\{\w+\}")


class ListedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call."""

    method: str
    path: str
    impact: str
    parameters: Any = None
    note: str = ""  # when it is made, if that is not certain
    calls: tuple[ListedCall, ...] = ()  # calls that it makes in turn


Reach = Callable[[str, str], tuple[str, tuple[ListedCall, ...]]]  # impact of an endpoint, and the calls it makes


def list_steps(steps: Iterable[Mapping[str, Any]], reach: Reach, around: str = "") -> Iterator[ListedCall]:
    """List valid steps as CHAIN takes them, those inside others too, each with the call that undoes it."""
    for step in steps:
        notes = [around] if around else []
        if step.get("when"):
            notes.append(f"if {step['when']}")
        if "for_each" in step:
            notes.append(f"for each element, at most {step['for_each'].get('max_items', MOST_ITEMS)}")
        if "approve" in step:
            around = ", ".join([*notes, f"if {step['approve'].get('who', 'somebody')} approves"])
        nested = nested_steps(step)
        if nested is not None:
            yield from list_steps(nested[1], reach, ", ".join(notes))
        elif "method" in step:
            yield _listed(step, reach, ", ".join(notes))
        if step.get("undo") or step.get("compensate"):
            yield _listed(step.get("undo") or step["compensate"], reach, "to undo the one before, if a later one fails")


def list_written(steps: Any, reach: Reach) -> tuple[ListedCall, ...] | Fault:
    """List steps as they were sent; a Fault says which one is not valid, or that there are too many calls."""
    return find_wrong_step(steps, "calls") or bounded(list_steps(steps, reach))


def _listed(step: Mapping[str, Any], reach: Reach, note: str) -> ListedCall:
    method, path = step["method"], step.get("path") or "/"
    impact, calls = reach(method, _NAME.sub("-", path))
    return ListedCall(method, path, impact, step.get("parameters") or None, note, calls)


def list_candidates(arguments: Mapping[str, Any], endpoints: Iterable[Endpoint], reach: Reach) -> Iterator[ListedCall]:
    """List what ROUTE may hand its item to; `endpoints` are those of the service, for a call that names none."""
    named = arguments.get("candidates")
    if named is None:
        own = (one for one in endpoints if one.is_listed and not (one.builtin or one.passes_on))
        named = [{"method": one.method, "path": one.path} for one in own]
    for one in named:
        yield _candidate(one, reach, "if it is chosen")
    if "fallback" in arguments:
        yield _candidate(arguments["fallback"], reach, "if no other fits")


def _candidate(written: Any, reach: Reach, note: str) -> ListedCall:
    if isinstance(written, str):
        method, blank, path = written.partition(" ")
        written = {"method": method, "path": path} if blank else {"agent": written}
    if "agent" in written:
        return ListedCall("NOTIFY", f"agent {written['agent']}", "irreversible", note=note)
    method, path, place = (str(written.get(name, "")) for name in ("method", "path", "service"))
    if place:
        return ListedCall(method, f"{place}{path}", UNKNOWN, note=note)
    return _listed({"method": method, "path": path}, reach, note)


def is_composite(endpoint: Endpoint) -> bool:
    """Return True for a standard method that calls what its arguments name, here or in the manifest of a service."""
    method = STANDARD.get(endpoint.method)
    if method is None or not method.passes_on or endpoint.path != "/":
        return False
    return set(method.required).issubset(endpoint.input_schema.get("properties", ()))


def list_named(
    endpoint: Endpoint, arguments: Mapping[str, Any], endpoints: Iterable[Endpoint]
) -> tuple[ListedCall, ...] | Fault:
    """List the calls that the arguments of a composite name, among the `endpoints` of another service."""
    if not is_composite(endpoint):
        return ()
    known = [(one, parse_template(one.path)) for one in endpoints]

    def reach(method: str, path: str) -> tuple[str, tuple[ListedCall, ...]]:
        found = [one for one, template in known if one.method == method and _matches(template, one.path, path)]
        exact = [one for one in found if one.path == path] or found
        return (exact[0].semantic.impact if exact else UNKNOWN), ()

    if endpoint.method in LISTS:
        return list_written(arguments[LISTS[endpoint.method]], reach)
    if endpoint.method == "ROUTE":
        return bounded(list_candidates(arguments, (one for one, _ in known), reach))
    return Fault(f"only the service knows what {endpoint} would call")


def bounded(calls: Iterable[ListedCall]) -> tuple[ListedCall, ...] | Fault:
    found: list[ListedCall] = []
    left = MOST_LISTED
    for one in calls:
        left -= count(one)
        if left < 0:
            return Fault(f"it makes more than {MOST_LISTED} calls")
        found.append(one)
    return tuple(found)


def count(call: ListedCall) -> int:
    return 1 + sum(map(count, call.calls))


def unlisted(name: str, fault: Fault) -> Refused:
    """Build the refusal of a composite that nobody can judge, because its calls cannot be listed."""
    message = f"{name} cannot be undone, and a person who confirms it must see every call: {fault.message}."
    details = {"remedy": "Make the calls one by one, or in smaller groups."}
    return Refused(status.CONTENT_TOO_LARGE, "calls-not-listed", message, details)


def _matches(template: Template | Fault, written: str, path: str) -> bool:
    if written == path or isinstance(template, Fault):
        return written == path
    parts = path[1:].split("/")
    return len(parts) == len(template.segments) and all(
        one is None or one == part for one, part in zip(template.segments, parts, strict=True)
    )


_MOST_ARGUMENTS: Final = 40
_LONGEST_VALUE: Final = 200
LONGEST: Final = 20_000  # characters of a question about a composite; nobody would read a longer one
_LISTED: Final = ("steps", "calls", "candidates", "fallback")  # arguments whose calls are listed one by one


class Named(Protocol):
    """An endpoint under the name that its callers use: a tool, a skill."""

    @property
    def name(self) -> str: ...

    @property
    def endpoint(self) -> Endpoint: ...


def declined(tool: Named) -> Outcome:
    message = f"The user did not agree to {tool.name}; it was not called."
    details = {"remedy": "Do not call it again unless the user asks for it."}
    return refused(Refused(status.FORBIDDEN, "confirmation-declined", message, details))


def question(tool: Named, arguments: Mapping[str, Any], calls: Sequence[ListedCall] = ()) -> str:
    """Say in words what will happen, with all `calls` of a composite; a repeated call gives the same text."""
    semantic = tool.endpoint.semantic
    lines = [semantic.intent or tool.endpoint.description or tool.name]
    if semantic.outcome:
        lines.append(semantic.outcome)
    lines.append("This cannot be undone.")
    if calls:
        lines += ["It makes these calls:", *list_lines(calls)]
    shown = {name: value for name, value in arguments.items() if not (calls and name in _LISTED)}
    lines += [f"- {name}: {cut_value(value)}" for name, value in list(shown.items())[:_MOST_ARGUMENTS]]
    if len(shown) > _MOST_ARGUMENTS:
        lines.append(f"- and {len(shown) - _MOST_ARGUMENTS} more arguments")
    return "\n".join(printable(line) for line in lines)


def too_long_to_show(tool: Named, text: str, remedy: str) -> Refused:
    """Build the refusal of a composite whose question is too long to be put to a person here."""
    message = (
        f"{tool.name} cannot be undone. The question about its calls has {len(text)} characters, too many to show to a "
        f"user here: at most {LONGEST}. Confirm it another way."
    )
    members = {"remedy": f"Call it with fewer calls at a time. {remedy}"}
    return Refused(status.CONTENT_TOO_LARGE, "too-long-to-show", message, members)


def list_lines(calls: Sequence[ListedCall], before: str = "") -> Iterator[str]:
    """Yield a line for each call, those that it makes in turn included."""
    for number, call in enumerate(calls, 1):
        note = f", {call.note}" if call.note else ""
        given = f", with {cut_value(call.parameters)}" if call.parameters else ""
        yield f"{before}{number}. {call.method} {call.path}: {call.impact}{note}{given}"
        yield from list_lines(call.calls, f"{before}{number}.")


def cut_value(value: Any) -> str:
    """Return an argument as text that a person can read."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"

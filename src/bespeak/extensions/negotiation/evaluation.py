"""Evaluations 5 to 7 of a proposal: authority, capability and policy (AGTP-API 10.3, 16.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import quote, unquote

from bespeak.checks.lint.rules.composition import find_gaps, write_path
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import parse_template
from bespeak.contract.handler import Composition
from bespeak.contract.recipe import Recipe, RecipeStep, Source
from bespeak.documents.adoption.naming import stems
from bespeak.extensions.negotiation.plan import Impossible, Plan, PlannedContract, Promises, loosen, make_contract
from bespeak.extensions.negotiation.planner.draft import LEVELS, MOST_FIELDS
from bespeak.extensions.negotiation.planner.slot import fit, slots_of
from bespeak.extensions.negotiation.planner.vocabulary import noun_of, resource_of
from bespeak.extensions.negotiation.proposal import Proposal
from bespeak.extensions.negotiation.settings import ForbiddenCombination, NegotiationSettings
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.call import Call, may_discover, sees
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors

Lookup = Callable[[tuple[str, str]], Endpoint | None]


def has_scopes(principal: Principal, endpoint: Endpoint) -> bool:
    return not principal.scopes.missing(endpoint.required_scopes)


def is_admitted(settings: NegotiationSettings, endpoint: Endpoint) -> bool:
    """Return True if the search for compositions may know an endpoint; the operator says which internal ones."""
    return not endpoint.internal or any(fnmatchcase(str(endpoint), pattern) for pattern in settings.internal)


def may_use(call: Call, settings: NegotiationSettings, endpoint: Endpoint) -> bool:
    """Return True if a composition may contain the endpoint; an internal one only for callers that hold its scopes."""
    route = call.routes.steps.get(endpoint.key)
    if route is None or endpoint.builtin or endpoint.missing or endpoint.method not in call.routes.allowed:
        return False
    if route.synthesis_id is not None:
        # Syntheses of syntheses would multiply: ten steps of ten steps of ten steps.
        return False
    if endpoint.internal:
        return is_admitted(settings, endpoint) and has_scopes(call.principal, endpoint)
    return sees(call, route)


def refuse_missing_scopes(call: Call, scopes: Iterable[str]) -> Refused | None:
    """Return the 262 of evaluation 5 if the caller lacks one of the scopes, or has none where one is required."""
    principal, required = call.principal, sorted(set(scopes))
    if required and principal.agent_id is None:
        names = ", ".join(required)
        return call.server.principals.credentials_missing(f"The proposed endpoint requires the scopes {names}")
    missing = principal.scopes.missing(required)
    if missing:
        message = f"The proposed endpoint requires the scopes {', '.join(missing)}, which the agent does not hold."
        return authorization_required(
            "scope-required",
            message,
            missing_scopes=missing,
            required_scopes=required,
            declared_scopes=[*principal.scopes],
        )
    if call.routes.policies.scope_required_for_invocation and not principal.scopes:
        message = "This server requires a scope for every call, so the proposed endpoint could not be called."
        return authorization_required("scope-required", message)
    return None


def refuse_unauthorized_data(call: Call, proposed: Endpoint) -> Refused | None:
    """Return the 262 for a data class in the path before a 463 could tell which columns it has (core 4.6)."""
    said = set(resource_of(proposed.path, ()).nouns)
    scopes = [
        scope
        for route in call.routes.steps.values()
        if route.endpoint.data_class is not None and noun_of(stems(route.endpoint.data_class)) in said
        for scope in route.endpoint.required_scopes
    ]
    return refuse_missing_scopes(call, scopes) if scopes else None


def list_parts(endpoints: Iterable[Endpoint], recipes: Mapping[str, Recipe], lookup: Lookup) -> list[Endpoint]:
    found: dict[tuple[str, str], Endpoint] = {}
    waiting = list(endpoints)
    while waiting:
        endpoint = waiting.pop()
        if endpoint.key in found:
            continue
        found[endpoint.key] = endpoint
        recipe = recipes.get(endpoint.handler.recipe) if isinstance(endpoint.handler, Composition) else None
        called = () if recipe is None else (lookup(step.endpoint) for step in recipe.steps)
        waiting += [part for part in called if part is not None]
    return list(found.values())


def find_forbidden(settings: NegotiationSettings, parts: Iterable[Endpoint]) -> ForbiddenCombination | None:
    """Return the first combination of which a composition has every member; None if it has none."""
    words: set[str] = set()
    for part in parts:
        words |= {str(part), *(f"scope:{scope}" for scope in part.required_scopes)}
        words |= {f"data:{part.data_class}", f"namespace:{part.namespace}"}
    words -= {"data:None", "namespace:None"}
    for combination in settings.forbidden:
        if all(any(fnmatchcase(word, pattern) for word in words) for pattern in combination.together):
            return combination
    return None


def match_recipe(proposed: Endpoint, recipes: Iterable[Recipe], catalog: Catalog, lookup: Lookup) -> Plan | None:
    for recipe in recipes:
        if recipe.pattern and _fits(recipe, proposed, catalog):
            endpoints = [lookup(step.endpoint) for step in recipe.steps]
            called = tuple(endpoint for endpoint in endpoints if endpoint is not None)
            if len(called) == len(endpoints):
                explanation = tuple(f"Calls {endpoint}." for endpoint in called)
                return Plan(recipe=recipe, endpoints=called, quality=1.0, explanation=explanation)
    return None


def _fits(recipe: Recipe, proposed: Endpoint, catalog: Catalog) -> bool:
    verb = catalog.verbs.get(proposed.method)
    properties = proposed.input_schema.get("properties")
    given = properties if isinstance(properties, dict) else {}
    tests: dict[str, Callable[..., bool]] = {
        "name_exact": lambda name: bool(name == proposed.method),
        "name_regex": lambda pattern: re.fullmatch(pattern, proposed.method) is not None,
        "category": lambda category: verb is not None and category in verb.categories,
        "path_exact": lambda path: bool(path == proposed.path),
        "path_regex": lambda pattern: re.fullmatch(pattern, proposed.path) is not None,
        "has_parameters": lambda names: set(names) <= given.keys(),
    }
    return all(tests[key](value) for key, value in recipe.pattern.items() if value)


IMPOSSIBLE: Final = "composition-impossible"
POLICY: Final = "policy-refused"
AMBIGUOUS: Final = "ambiguous"  # reasons of a 463 (core 4.6)
_MOST_MISSES: Final = 10
_UNESCAPED: Final = "!$&'()*+,;=:@"  # needs no escape in a segment, like letters, digits and `-._~` (AGTP-API 5.2)

_ALIKE: Final = str.maketrans(
    "01iıаеіјкмнопрстухѕһԁԛԝӏвьгαβγεηικνορτυχωօսհոցզքɑɡøđł", "olllaeljkmhonpctyxshdqwlbbrabyenlkvoptuxwouhngqpagodl"
)
"""Characters that look like another one: digits, and letters of scripts beside Latin."""

Search = Callable[[Endpoint, Callable[[Endpoint], bool]], Plan | Impossible]
"""Searches a composition of the endpoints that may be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A proposal that the server does not carry out, with what the agent can do about it."""

    reason: str
    explanation: str
    counter: PlannedContract | None = None  # a contract that would be accepted; None if none fits
    nearest: tuple[Endpoint, ...] = ()  # endpoints to name first among similar ones
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Evaluates a proposal for one caller, whose endpoints are those of its call."""

    call: Call
    proposal: Proposal
    settings: NegotiationSettings
    recipes: Mapping[str, Recipe]  # recipes of the operator by name
    search: Search
    register: Callable[[PlannedContract], list[Diagnostic]]

    def judge(self, offered: Plan | None = None) -> PlannedContract | Rejection | Refused:
        """Return the contract of a proposal, or what refuses it; `offered` is a plan that the agent accepts. Slow."""
        proposal = self.proposal
        refused = refuse_missing_scopes(self.call, proposal.scopes)
        if refused is not None:
            return refused
        existing = self._find_existing()
        if existing is not None and existing.internal:
            # Its contract is not for the caller to learn, although it may call it.
            return self._not_admitted()
        if existing is not None:
            return self._judge_existing(existing)
        misleading = self._find_misspelling()
        if misleading is not None:
            return Rejection(reason=POLICY, explanation=misleading)
        plan = self._plan()
        if isinstance(plan, Impossible):
            return refuse_unauthorized_data(self.call, proposal.endpoint) or self._explain(plan)
        if plan.output is not None:
            stated = replace(proposal, endpoint=replace(proposal.endpoint, output_schema=plan.output))
            return replace(self, proposal=stated)._judge_plan(plan, offered)
        return self._judge_plan(plan, offered)

    def _judge_plan(self, plan: Plan, offered: Plan | None) -> PlannedContract | Rejection | Refused:
        # AGTP-API 10.4: authority that a step lacks is found now, not when it runs.
        # Those of internal steps are held: a plan that lacks one is not found.
        named = [scope for part in plan.endpoints if not part.internal for scope in part.required_scopes]
        refused = refuse_missing_scopes(self.call, (*self.proposal.scopes, *named))
        # What an agent has agreed to is judged again: it counts only if the same would still be done.
        return refused or self._apply_policy(plan, is_agreed=offered is not None and _steps(offered) == _steps(plan))

    def _plan(self) -> Plan | Impossible:
        """Find a plan: an operator's recipe first, else by search, preferring one that the caller may run."""
        call, proposed = self.call, self.proposal.endpoint
        plan = match_recipe(proposed, self.recipes.values(), call.routes.catalog, self._find_usable)
        if plan is not None:
            return plan
        is_usable = partial(may_use, call, self.settings)
        held = self.search(proposed, lambda endpoint: is_usable(endpoint) and has_scopes(call.principal, endpoint))
        if isinstance(held, Plan):
            return held
        beyond = self.search(proposed, is_usable)
        if isinstance(beyond, Plan) and beyond.is_certain:
            return beyond
        if not self.settings.internal:
            return beyond if isinstance(beyond, Impossible) else held  # what lacks only a scope is not missing
        # What is said about a failure must not come from endpoints that are not for the caller to learn of.
        public = self.search(proposed, lambda endpoint: not endpoint.internal and is_usable(endpoint))
        return public if isinstance(public, Impossible) else Impossible(misses=())

    def _find_usable(self, key: tuple[str, str]) -> Endpoint | None:
        """Return an endpoint that a recipe may call; an internal one only with its scopes: asking reveals it."""
        endpoint, route = self._find(key), self.call.routes.steps.get(key)
        if endpoint is None or route is None:
            return None
        is_usable = has_scopes(self.call.principal, endpoint) if endpoint.internal else sees(self.call, route)
        return endpoint if is_usable else None

    def _find(self, key: tuple[str, str]) -> Endpoint | None:
        route = self.call.routes.steps.get(key)
        return None if route is None or route.synthesis_id is not None else route.endpoint

    def _apply_policy(self, plan: Plan, *, is_agreed: bool) -> PlannedContract | Rejection:
        call, proposal = self.call, self.proposal
        depth = call.routes.policies.max_synthesis_depth
        if len(plan.recipe.steps) > depth:
            message = f"The composition needs {len(plan.recipe.steps)} steps; this server allows {depth}."
            return Rejection(reason=IMPOSSIBLE, explanation=message)
        method, path = proposal.endpoint.key
        if method not in call.routes.allowed or call.routes.redirects.follow(method, path) != (method, path):
            return self._not_admitted()
        if path != "/" and any(map(_is_ambiguous, path[1:].split("/"))):
            explanation = (
                f"Some clients and proxies read another path than {path}: it has an empty segment, a segment of dots, "
                "or unusual escapes. Propose the path that is meant."
            )
            return Rejection(reason=POLICY, explanation=explanation)
        forbidden = find_forbidden(self.settings, list_parts(plan.endpoints, self.recipes, self._find))
        if forbidden is not None:
            why = forbidden.reason or "The operator does not allow this combination of endpoints."
            return Rejection(reason=POLICY, explanation=why)
        objection = self._object(plan, is_agreed=is_agreed)
        if objection is not None:
            return objection
        contract = make_contract(proposal, plan)
        findings = self.register(contract)
        if has_errors(findings):
            return _unfit(plan, findings)
        called = {key: route.endpoint for key in contract.recipe.calls if (route := call.routes.steps.get(key))}
        missing = find_gaps(contract.endpoint, contract.recipe, called)
        return self._make_optional(plan, missing) if missing else contract

    def _not_admitted(self) -> Rejection:
        endpoint = self.proposal.endpoint
        return Rejection(reason=POLICY, explanation=f"The policy of this server does not admit {endpoint}.")

    def _make_optional(self, plan: Plan, missing: Sequence[tuple[str, ...]]) -> Rejection:
        """Offer the endpoint without requiring fields that a step may give as null: its answers would be refused."""
        names = ", ".join(map(write_path, missing[:5]))
        explanation = f"The proposal requires {names}, which may have no value here. Make it optional, or allow null."
        schema = loosen(self.proposal.endpoint.output_schema, missing)
        if schema is None:
            return Rejection(reason=IMPOSSIBLE, explanation=explanation)
        less = replace(self.proposal, endpoint=replace(self.proposal.endpoint, output_schema=schema))
        return self._counter(IMPOSSIBLE, explanation, plan, less)

    def _object(self, plan: Plan, *, is_agreed: bool) -> Rejection | None:
        """Offer what the plan does if the proposal says otherwise; doubts about what is meant come first."""
        proposal, reasons, said = self.proposal, list[str](), list[str]()
        if not is_agreed and not plan.is_certain:
            doubts = "" if plan.has_internal else " ".join(plan.doubts)
            doubts = doubts or "The proposal leaves open what is meant."
            reasons.append(AMBIGUOUS)
            said.append(f"{doubts} The counter-proposal states what this server would do.")
        if plan.is_worse_than(proposal):
            reasons.append(POLICY)
            said.append(f"The proposal says {proposal.endpoint.semantic.impact}, but a call would be {plan.impact}.")
        promises = Promises(proposal.endpoint, plan.endpoints)
        if promises.unkept:
            # Answers without them would break the contract.
            reasons.append(IMPOSSIBLE)
            said.append(f"No endpoint of this server promises {', '.join(dict.fromkeys(promises.unkept[:5]))}.")
            proposal = replace(proposal, endpoint=replace(proposal.endpoint, output_schema=promises.output))
        if not reasons:
            return None
        states_plan = reasons[0] == AMBIGUOUS or bool(promises.unkept)
        return self._counter(reasons[0], " ".join(said), plan, proposal, states_plan=states_plan)

    def _counter(
        self, reason: str, explanation: str, plan: Plan, proposal: Proposal, *, states_plan: bool = False
    ) -> Rejection:
        counter = make_contract(proposal, plan, states_plan=states_plan)
        fits = not has_errors(self.register(counter))
        return Rejection(reason=reason, explanation=explanation, counter=counter if fits else None)

    def _find_existing(self) -> Endpoint | None:
        """Return the operator's endpoint with the proposed method and path; None if the caller may not know of it."""
        wanted = _segments(self.proposal.endpoint)
        for endpoint in self.call.routes.endpoints.values():
            if endpoint.method == self.proposal.endpoint.method and _segments(endpoint) == wanted:
                route = self.call.routes.steps.get(endpoint.key)
                if route is None or route.synthesis_id is not None:
                    return None
                visible = not endpoint.internal and may_discover(self.call)
                return endpoint if visible or sees(self.call, route) else None
        return None

    def _find_misspelling(self) -> str | None:
        """Return why a path would be taken for an existing one that the caller may know of; None if it would not."""
        wanted = _segments(self.proposal.endpoint)
        if isinstance(wanted, str):
            return None
        shown = may_discover(self.call)
        known = [
            _segments(route.endpoint)
            for route in self.call.routes.steps.values()
            if (shown and not route.endpoint.internal) or sees(self.call, route)
        ]
        places = [_place_of_variant(wanted, segments) for segments in known]
        at = min((place for place in places if place is not None), default=None)
        if at is None or any(segments[: at + 1] == wanted[: at + 1] for segments in known):
            return None
        path = self.proposal.endpoint.path
        return (
            f"{path} differs from an existing path in the spelling of {wanted[at]!r} alone. Use the existing spelling."
        )

    def _judge_existing(self, existing: Endpoint) -> PlannedContract | Rejection:
        proposed = self.proposal.endpoint
        counter = None if existing.builtin else _pass_through(existing)
        claims_less = not self.proposal.is_brief and proposed.semantic.impact != existing.semantic.impact
        same_scopes = self.proposal.is_brief or proposed.required_scopes == existing.required_scopes
        if counter is not None and same_scopes and not claims_less and _is_part_of(proposed, existing):
            return counter
        explanation = f"{existing} exists already, with another contract; call it, or propose another path."
        return Rejection(reason=POLICY, explanation=explanation, counter=counter, nearest=(existing,))

    def _explain(self, impossible: Impossible) -> Rejection:
        """Say which fields are missing, and which endpoints came closest: only those that the caller may know of."""
        known = [
            miss
            for miss in (impossible.misses if may_discover(self.call) else ())
            if miss.nearest is None or (not miss.nearest.internal and may_use(self.call, self.settings, miss.nearest))
        ]
        misses = [{"field": miss.field[:200], "reason": miss.reason[:300]} for miss in known[:_MOST_MISSES]]
        for told, miss in zip(misses, known, strict=False):
            if miss.nearest is not None:
                told["nearest"] = str(miss.nearest)
        explanation = "The endpoints of this server cannot be composed into this one."
        if misses:
            explanation += f" {misses[0]['reason']}"
        if impossible.exhausted:
            explanation += " The search reached its limit; propose an endpoint with fewer fields."
        nearest = {miss.nearest.key: miss.nearest for miss in known if miss.nearest is not None}
        return Rejection(
            reason=IMPOSSIBLE,
            explanation=explanation,
            nearest=tuple(nearest.values()),
            details={"misses": misses} if misses else {},
        )


def _is_ambiguous(segment: str) -> bool:
    """Return True for a segment that AGTP-API 5.2 allows and others normalize (RFC 3986 6.2.2)."""
    if segment.startswith("{"):
        return False
    text = unquote(segment)
    return text in ("", ".", "..") or "/" in text or quote(text, safe=_UNESCAPED) != segment


def _place_of_variant(wanted: Sequence[str | None], known: Sequence[str | None]) -> int | None:
    """Return the place of the first segment in which two paths differ, if it differs in its spelling alone."""
    for at, (mine, other) in enumerate(zip(wanted, known, strict=False)):
        if mine != other:
            return at if mine is not None and other is not None and _skeleton(mine) == _skeleton(other) else None
    return None


@lru_cache(maxsize=4096)
def _skeleton(segment: str) -> str:
    """Return a segment for a reader who overlooks case, separators, accents, and that l is not 1."""
    text = normalize("NFKD", unquote(segment)).casefold()
    return "".join(char for char in text if char.isalnum()).translate(_ALIKE) or segment


def _steps(plan: Plan) -> Any:
    return replace(plan.recipe, name="", pattern={}, description="").to_json()


def _pass_through(endpoint: Endpoint) -> PlannedContract:
    name = f"call-{endpoint.method.lower()}"
    properties = endpoint.input_schema.get("properties")
    given = {field: Source(kind="proposal", value=field) for field in (properties or {})}
    return PlannedContract(
        endpoint=replace(endpoint, handler=Composition(recipe=name)),
        recipe=Recipe(name=name, steps=(RecipeStep(method=endpoint.method, path=endpoint.path, input=given),)),
        explanation=(f"Calls {endpoint}, which exists.",),
    )


def _unfit(plan: Plan, findings: list[Diagnostic]) -> Rejection:
    """Reject a plan whose recipe does not fit the proposed contract. Findings may name internal endpoints."""
    explanation = "The composition does not fit the proposed contract."
    wrong = [finding for finding in findings if finding.severity == "error"]
    if plan.has_internal:
        return Rejection(reason=IMPOSSIBLE, explanation=explanation)
    misses = [{"field": finding.pointer[:200], "reason": finding.message[:300]} for finding in wrong[:_MOST_MISSES]]
    explanation += f" {wrong[0].message[:300]}."
    return Rejection(reason=IMPOSSIBLE, explanation=explanation, details={"misses": misses})


def _is_part_of(proposed: Endpoint, existing: Endpoint) -> bool:
    """Return True if an endpoint takes what is proposed to be sent, and yields what is wanted."""
    if (proposed.input_schema, proposed.output_schema) == (existing.input_schema, existing.output_schema):
        return True
    if proposed.path != existing.path:
        return False
    taken = {one.path: one for one in slots_of(existing.input_schema, most=MOST_FIELDS, levels=LEVELS)}
    sent = {one.path: one for one in slots_of(proposed.input_schema, most=MOST_FIELDS, levels=LEVELS)}
    made = {one.path: one for one in slots_of(existing.output_schema, most=MOST_FIELDS, levels=LEVELS)}
    wanted = slots_of(proposed.output_schema, most=MOST_FIELDS, levels=LEVELS)
    lacking = [one for path, one in taken.items() if one.required and (path not in sent or not sent[path].required)]
    return (
        not lacking
        and all(path in taken and fit(taken[path].facts, one.facts, sent=True) for path, one in sent.items())
        and all(
            one.path in made
            and fit(one.facts, made[one.path].facts) == 1
            and (made[one.path].required or not one.required)
            for one in wanted
        )
    )


def _segments(endpoint: Endpoint) -> Any:
    return getattr(parse_template(endpoint.path), "segments", endpoint.path)

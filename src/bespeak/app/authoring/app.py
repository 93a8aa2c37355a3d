"""Services written in Python: decorated functions become endpoints, and mistakes raise at declaration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Never, Self, TypeVar

from bespeak.app.authoring.declarations import (
    IN_PYTHON,
    check_behaviour,
    check_streaming,
    declare_errors,
    declared_data,
    declaring,
    refuse_removed,
    with_function,
)
from bespeak.app.authoring.participation import Participation
from bespeak.app.authoring.recipe_trace import Input, RecipeTrace
from bespeak.checks.lint import registration
from bespeak.checks.lint.registration import check_endpoint, effective_policies
from bespeak.checks.lint.rules.composition import FUNCTION
from bespeak.checks.lint.rules.error import ERROR_NAME
from bespeak.checks.lint.rules.path import PathClaims
from bespeak.checks.lint.rules.policy import SCOPE
from bespeak.checks.lint.rules.schema import INVALID
from bespeak.checks.lint.rules.semantic import CONCEPT, MISSING_TEXT
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.data_set import DataSet, bind_sources
from bespeak.contract.endpoint import Deprecation, Endpoint, Impact, Semantic
from bespeak.contract.handler import COMPOSITION_FAILED, Composition, Needs, RegisteredFunction
from bespeak.contract.limits import read_cost
from bespeak.contract.participant import Participant
from bespeak.contract.policy import Policies, Redirect
from bespeak.contract.procedure import Procedure, find_repeated
from bespeak.contract.recipe import Recipe
from bespeak.contract.rules import COST
from bespeak.contract.service import (
    DEFAULT_CATALOG,
    UNSPECIFIED,
    DataManifest,
    Resource,
    ServerIdentity,
    Service,
    Vocabulary,
)
from bespeak.contract.standard.methods import choose_methods, is_choice
from bespeak.documents.deployment.server_toml import served_with
from bespeak.errors import ContractError
from bespeak.runtime.bindings.function import Resources, read_lifespan
from bespeak.runtime.bindings.participant import bind_procedure
from bespeak.runtime.functions.needs import plan_needs, provider_key
from bespeak.runtime.functions.reading import FunctionReading, locate, read_handler
from bespeak.runtime.functions.signature import dotted_name
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief, has_errors
from bespeak.text.source.tree import Location

if TYPE_CHECKING:
    from bespeak.app.authoring.agis_contract import AgisContract
    from bespeak.runtime.extension import Extension

DEFAULT_CONFIDENCE: Final = 0.9  # below 1, because a tested function can still meet a failing resource
_NO_DOCSTRING: Final = (
    "the function has no docstring: its first paragraph is the intent, and a paragraph `Outcome:` describes the result"
)

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Items = TypeVar("_Items", bound=Callable[[], Iterable[str | Mapping[str, Any]]])


class App(Participation):
    """A service whose endpoints are decorated Python functions."""

    def __init__(
        self,
        name: str,
        *,
        server_id: str = "",
        operator: str = UNSPECIFIED,
        contact: str = "",
        domain: str | None = None,
        catalog: str = DEFAULT_CATALOG,
        policies: Policies | None = None,
        description: str = "",
        version: str | None = None,
        vocabulary: Vocabulary | None = None,
        data_manifest: DataManifest | None = None,
        methods: Iterable[str] = (),
        extensions: Iterable[Extension] = (),
    ) -> None:
        """Create a service without endpoints.

        What is left out here may be in the `bespeak.toml` beside the file: `[server]`, `[policies]`, `[methods]`.
        `catalog` is a bundled version or the path of a catalog document. `policies` default to those of AGTP-API 8.7.
        `vocabulary` and `data_manifest` become blocks of the AGIS document; verbs in use need not be listed. `methods`
        enables standard methods: their names, categories of them, or `*` for all. `extensions` are capabilities of
        your own (provisional).
        """
        self.location = _calling_place()
        methods = tuple(methods)
        unknown = next((method for method in methods if not is_choice(method)), None)
        if unknown is not None:
            raise ContractError(f"{unknown!r} is not a standard method or category; see `bespeak methods list`")
        identity = ServerIdentity(name=name, server_id=server_id, operator=operator, contact=contact, domain=domain)
        service = Service(
            identity=identity,
            policies=policies or Policies(),
            catalog=catalog,
            description=description,
            document_version=version,
            vocabulary=vocabulary,
            data_manifest=data_manifest,
            methods=choose_methods(methods),
            extensions=tuple(extensions),
        )
        self._start(service, _opened(catalog))

    def _start(self, service: Service, catalog: Catalog, contract: AgisContract | None = None) -> None:
        self.name = service.identity.name
        # The AGIS document whose endpoints are bound here; None for an app written in Python only.
        self.contract = contract
        self._service = service
        self._catalog = catalog
        self._policies = service.policies
        self._endpoints: list[Endpoint] = []
        self._claims = PathClaims()
        self._readings: dict[int, tuple[Callable[..., Any], FunctionReading]] = {}
        # Keyed by identity, with a reference to the function: callables need not be hashable.
        self._redirects: list[Redirect] = []
        self._resources: list[Resource] = []
        self._data: list[DataSet] = []
        self._procedures: list[Procedure] = []
        self._participants: list[Participant] = []
        self._recipes: dict[str, tuple[Callable[..., Any], Recipe]] = {}
        self._trace: RecipeTrace | None = None  # the recipe whose function runs; None most of the time
        self._wildcard: Callable[..., Any] | None = None
        self._lifespan: Resources | None = None
        self._overrides: dict[Hashable, Callable[..., Any]] = {}  # replacements of providers, inside `override`

    @classmethod
    def from_agis(
        cls,
        document: str | PathLike[str],
        *,
        server_id: str = "",
        operator: str = UNSPECIFIED,
        contact: str = "",
        domain: str | None = None,
        catalog: str = DEFAULT_CATALOG,
        policies: Policies | None = None,
    ) -> Self:
        """Create an app from an AGIS document. Bind its endpoints with `handler`.

        A relative path is resolved against the calling file. Arguments override what the document says. Verbs that are
        not in the catalog become custom methods. Raises ContractError if the document is not valid.
        """
        from bespeak.app.authoring.agis_contract import open_agis  # noqa: PLC0415 - all rules of AGIS come with it

        caller = sys._getframe(1).f_globals.get("__file__")
        opened = _opened(catalog)
        contract = open_agis(Path(caller).parent / document if caller else Path(document), opened, policies)
        given = ServerIdentity(server_id=server_id, operator=operator, contact=contact, domain=domain)
        app = cls.__new__(cls)
        app.location = _calling_place()
        app._start(served_with(contract.service, given, policies, catalog), opened, contract)
        for endpoint in contract.service.endpoints:
            app._claims.claim(endpoint)
        return app

    def handler(
        self, method: str, path: str, *, inline: bool = False, **removed: Never
    ) -> Callable[[_Function], _Function]:
        """Bind the decorated function to an endpoint of the AGIS document. The function is returned unchanged.

        Parameters are matched to input fields by name; one may be annotated `Context`. Raises ContractError if the
        function does not fit the endpoint. `inline` is that of `endpoint`.
        """
        refuse_removed(removed, f"{method} {path}")

        @declaring
        def bind(function: _Function) -> _Function:
            name = f"{method} {path}"
            place = locate(function)
            if self.contract is None:
                text = f"{place}: {name} cannot be bound, because the app has no AGIS document. Create the app with "
                raise ContractError(text + "App.from_agis, or declare the endpoint with `endpoint`.")
            handler = self._bind(function, inline=inline)
            _raise_errors(f"{name} cannot be bound", self.contract.bind(method, path, handler, place))
            return function

        return bind

    @property
    def findings(self) -> list[Diagnostic]:
        """Diagnostics of AGIS endpoints that are not served; empty if the app was not created from a document."""
        return self.contract.findings if self.contract else []

    def endpoint(
        self,
        method: str,
        path: str,
        *,
        impact: Impact,
        confidence: float = DEFAULT_CONFIDENCE,
        capability: str | None = None,
        actor: str = "agent",
        idempotent: bool | None = None,
        scopes: Sequence[str] = (),
        errors: Mapping[str, str] | Sequence[str] = (),
        namespace: str | None = None,
        deprecated: Deprecation | None = None,
        cost: Mapping[str, int | float | str] | None = None,
        confirm: bool | None = None,
        internal: bool = False,
        since: str | None = None,
        description: str | None = None,
        intent: str | None = None,
        outcome: str | None = None,
        inline: bool = False,
        confidence_guidance: float | None = None,
        parameter_hints: Mapping[str, Any] | None = None,
        state_transition: Mapping[str, str] | None = None,
        mcp_tool_name: str | None = None,
        concepts: Sequence[str] = (),
        **removed: Never,
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as the handler of a method on a path. The function is returned unchanged.

        The parameters give the input schema and the return annotation gives the output schema. The docstring gives the
        rest: its first paragraph is the intent, `Outcome:` the outcome, `Errors:` declares errors and `Args:` describes
        parameters. Arguments of the decorator override the docstring. Raises ContractError for an invalid contract.

        - `impact` is `"informational"`, `"reversible"` or `"irreversible"`. It has no default; only the author knows.
        - `idempotent` defaults to true for informational endpoints and to false for all others.
        - `capability` defaults to the first category of the method in the catalog.
        - `cost` is the maximum cost of a call by unit: `{"tokens": 500, "USD": "0.02"}`.
        - `confirm` overrides `policies.confirm_irreversible`: whether calls wait until another party confirms them.
        - `internal` endpoints are served but do not appear in published documents.
        - `since` is the path of the modification time in the output, `rooms[].updated_at`. It enables `?since=`.
        - `inline` runs a quick `def` in the event loop. Without it a `def` runs in a thread, so that it may wait.
        - `concepts` are IRIs of capabilities that domain ontologies define.
        """
        refuse_removed(removed, f"{method} {path}")

        @declaring
        def declare(function: _Function) -> _Function:
            name = f"{method} {path}"
            lists = (("scopes", SCOPE, scopes), ("errors", ERROR_NAME, errors), ("concepts", CONCEPT, concepts))
            for word, rule, given in lists:
                if isinstance(given, str):  # a string is a sequence too, so type checkers accept it
                    text = f"{word} must be a list; got the string {brief(given)}. Write [{brief(given)}]"
                    raise _refusal(name, function, rule, text)
            reading, verb = self._read(function, name), self._catalog.verbs.get(method)
            prose = reading.prose
            if not (prose.intent or prose.outcome or (intent and outcome)):
                raise _refusal(name, function, MISSING_TEXT, _NO_DOCSTRING)
            declared_cost, faults = read_cost(cost or {})
            if faults:
                raise _refusal(name, function, COST, faults[0].message)
            recipe = next((one for one, (describing, _) in self._recipes.items() if describing is function), None)
            endpoint = Endpoint(
                method=method,
                path=path,
                description=description or intent or prose.intent,
                semantic=Semantic(
                    intent=intent or prose.intent,
                    actor=actor,
                    outcome=outcome or prose.outcome,
                    capability=(verb.categories[0] if verb else "") if capability is None else capability,
                    confidence=confidence,
                    impact=impact,
                    is_idempotent=impact == "informational" if idempotent is None else idempotent,
                    confidence_guidance=confidence_guidance,
                    parameter_hints=dict(parameter_hints or {}),
                    state_transition=state_transition or {},
                    mcp_tool_name=mcp_tool_name,
                    concepts=tuple(concepts),
                ),
                input_schema=reading.input_schema,
                output_schema=reading.output_schema,
                errors=declare_errors(errors, prose.errors),
                handler=self._bind(function, inline=inline) if recipe is None else Composition(recipe=recipe),
                namespace=namespace,
                required_scopes=tuple(scopes),
                deprecated=deprecated,
                cost=declared_cost,
                confirm=confirm,
                internal=internal,
                since=since,
                streams=reading.streams,
                location=locate(function),
            )
            self._declare(endpoint, reading)
            return function

        return declare

    def recipe(
        self,
        method: str,
        path: str,
        *,
        impact: Impact,
        timeout_seconds: float = 30.0,
        scopes: Sequence[str] = (),
        **fields: Any,
    ) -> Callable[[_Function], _Function]:
        """Declare an endpoint that is composed of other endpoints. The function is returned unchanged.

        The function describes a recipe: it runs once, now, with values that are not known yet, and calls `step` for
        each endpoint. Its parameters, its return annotation and its docstring are read as by `endpoint`, and so are
        `fields`. It returns an object of values, or the output of the last step. `scopes` must include those of all
        steps, and `impact` must not be better than theirs. The error `composition_failed` is declared automatically.
        Raises ContractError for what a recipe cannot express.

        - `timeout_seconds` is the time for all steps together.
        """

        @declaring
        def declare(function: _Function) -> _Function:
            name = function.__name__.replace("_", "-")
            known = self._recipes.get(name)
            if known is None:
                recipe = self._traced(f"{method} {path}", function, name, timeout_seconds)
            elif known[0] is not function:
                raise ContractError(f"{locate(function)}: another function describes the recipe {name!r}")
            else:
                recipe = known[1]
            self._recipes[name] = function, recipe
            return self.endpoint(method, path, impact=impact, scopes=scopes, errors=described, **fields)(function)

        errors = fields.pop("errors", ())
        described = dict(errors) if isinstance(errors, Mapping) else dict.fromkeys(errors, "")
        described.setdefault(COMPOSITION_FAILED, "A step of the composition failed.")
        return declare

    def step(self, method: str, path: str, given: Input | None = None, **options: Any) -> Any:
        """Call an endpoint in a recipe; return its output, whose fields are attributes or items.

        `given` is the input: an object with values, constants and objects of both. The other arguments are options:

        - `when` is a condition, or a list of them, without which the step is skipped: `when=room.price < limit`.
        - `for_each` is a list: the step runs once for each element, at most `max_items`, and `given` may be a function
          of the element. The output is a list of objects with `item` and `output`.
        - `on_failure="skip"` leaves a failed step or element out.
        - `undo` is `(method, path, given)`: the call that undoes the step if a later one fails. Its `given` may be a
          function of the step's output.
        - `retry={"attempts": 3, "delay": 0.5}` tries again if a failure may pass. Each further pause is twice as
          long.
        - `timeout` is the seconds for one attempt.
        - `name` is what refusals call the output; by default `step_1` and so on.
        - `pages` has `parameter`, `items`, and `cursor` or `counts`, to read all pages of a list, at most `most`.
        """
        if self._trace is None:
            raise ContractError(f"{method} {path}: a step belongs into a function that `recipe` declares")
        return self._trace.add(method, path, given or {}, **options)

    def together(self) -> AbstractContextManager[None]:
        """Run the steps of a `with` block at the same time. They do not see each other's outputs."""
        if self._trace is None:
            raise ContractError("steps run at the same time only in a function that `recipe` declares")
        return self._trace.together()

    def _traced(self, endpoint: str, function: Callable[..., Any], name: str, timeout: float) -> Recipe:
        self._trace = RecipeTrace()
        try:
            return self._trace.run(function, name=name, timeout_seconds=timeout)
        except (ContractError, TypeError) as error:
            raise _refusal(endpoint, function, FUNCTION, str(error)) from None
        finally:
            self._trace = None

    def redirect(
        self, from_method: str, from_path: str | None = None, *, to_method: str, to_path: str | None = None
    ) -> None:
        """Handle requests for one method and path as another.

        Without `from_path` any path matches; without `to_path` the path is kept.
        """
        other = Redirect(from_method=from_method, from_path=from_path, to_method=to_method, to_path=to_path)
        self._redirects.append(other)

    def resource(self, name: str, description: str) -> Callable[[_Items], _Items]:
        """Declare a function that yields texts or objects; `QUERY /` searches them."""

        @declaring
        def declare(items: _Items) -> _Items:
            if any(resource.name == name for resource in self._resources):
                raise ContractError(f"{locate(items)}: resource {name!r} already exists")
            self._resources.append(Resource(name=name, description=description, items=items))
            return items

        return declare

    def data(
        self, name: str, *, columns: Mapping[str, Any] | None = None, **settings: Any
    ) -> Callable[[_Function], _Function]:
        """Declare a class of data that agents may negotiate about, over rows of the decorated function (AGIS 8.3).

        The function returns rows, and may take a `DataQuery` to return fewer. `columns` are their types; without it,
        they are those of its return annotation. `settings` are fields of `DataSet`: `description`, `formats`,
        `sensitivity`, `requires_authorization`, `scopes`, `key` and others. With `file`, or `database` and `table` or
        `query`, the rows come from there, and nothing is decorated. For a class of an AGIS document only the source is
        declared.
        """
        given = declared_data(name, columns, **settings)
        place = len(self._data)
        self._data.append(given)

        @declaring
        def declare(function: _Function) -> _Function:
            self._data[place] = with_function(given, function)
            return function

        return declare

    def procedure(
        self,
        procedure_id: str,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002 - the word of the draft
        description: str = "",
        idempotent: bool = False,
        timeout: float = 300.0,
        scopes: Sequence[str] = (),
        errors: Sequence[str] = (),
    ) -> Callable[[_Function], _Function]:
        """Declare the decorated function as a procedure that RUN may run. The function is returned unchanged.

        Raises ContractError if it cannot be run.

        - `input` is the JSON Schema of its input; by default that of its parameters.
        - `idempotent` says that it may run again after the server died while it ran. Otherwise such a run fails.
        - `timeout` is the most seconds that it may take. A function that is not async runs in a thread, which goes on
          after that.
        - `scopes` are needed beside activation:run.
        """

        @declaring
        def declare(function: _Function) -> _Function:
            declared = Procedure(
                procedure_id=procedure_id,
                description=description,
                function=dotted_name(function),
                input_schema=input,
                idempotent=idempotent,
                timeout=timeout,
                scopes=tuple(scopes),
                errors=tuple(errors),
                target=function,
                overrides=self._overrides,
            )
            fault = bind_procedure(declared)
            if find_repeated((*self._procedures, declared)) is not None:
                fault = "another procedure has its id"
            if isinstance(fault, str):
                raise ContractError(f"{locate(function)}: the procedure {procedure_id!r} cannot be run: {fault}")
            self._procedures.append(declared)
            return function

        return declare

    def wildcard(self, function: _Function) -> _Function:
        """Declare the handler of ad-hoc invocations, which takes the Context. Needs `wildcards_accepted`."""
        place = locate(function)
        if not self._policies.wildcards_accepted:
            raise ContractError(f"{place}: a wildcard handler needs policies=Policies(wildcards_accepted=True)")
        if self._wildcard is not None:
            raise ContractError(f"{place}: a wildcard handler already exists, at {locate(self._wildcard)}")
        self._wildcard = function
        return function

    def lifespan(self, function: _Function) -> _Function:
        """Declare the generator that opens what handlers share, yields it as `Context.state`, and closes it.

        It runs once in each process, before the first call and after the last one:

            @app.lifespan
            async def resources():
                async with open_pool() as pool:
                    yield pool
        """
        if self._lifespan is not None:
            raise ContractError(f"{locate(function)}: a lifespan function already exists")
        self._lifespan = read_lifespan(function)
        return function

    @contextmanager
    def override(self, provider: Callable[..., Any], replacement: Callable[..., Any]) -> Iterator[None]:
        """Let handlers have what a replacement provides in place of a provider, inside the block: for tests.

        The replacement is read as a provider is. Raises ContractError if it cannot be one.
        """
        plan_needs({"replacement": Needs(replacement)})
        key, before = provider_key(provider), dict(self._overrides)
        self._overrides[key] = replacement
        try:
            yield
        finally:
            del self._overrides[key]
            self._overrides.update({key: before[key]} if key in before else {})

    def service(self) -> Service:
        """Return the service as declared so far. Raises ContractError if its policies or texts are not valid."""
        policies = self._policies
        if self._redirects:
            methods = replace(policies.methods, redirects=(*policies.methods.redirects, *self._redirects))
            policies = replace(policies, methods=methods)
        _, findings = effective_policies(policies, self._catalog)
        _raise_errors(f"the policies of {self.name} are not valid", findings)
        bound = self.contract.endpoints if self.contract else ()
        manifest, faults = bind_sources(self._service.data_manifest, self._data, closed=self.contract is not None)
        if faults:
            raise ContractError(f"the data of {self.name} cannot be declared: {faults[0][1]}")
        service = replace(
            self._service,
            endpoints=(*bound, *self._endpoints),
            policies=policies,
            recipes=tuple(recipe for _, recipe in self._recipes.values()),
            resources=tuple(self._resources),
            procedures=tuple(self._procedures),
            participants=tuple(self._participants),
            data_manifest=manifest,
            wildcard_handler=self._wildcard,
            lifespan=self._lifespan,
        )
        _raise_errors(f"the texts of {self.name} are not valid", list(registration.check_service_encoding(service)))
        return service

    def _bind(self, function: Callable[..., Any], *, inline: bool) -> RegisteredFunction:
        overrides = self._overrides
        return RegisteredFunction(function=dotted_name(function), target=function, inline=inline, overrides=overrides)

    def _read(self, function: Callable[..., Any], endpoint: str) -> FunctionReading:
        known = self._readings.get(id(function))
        if known is None:
            try:
                reading = read_handler(function)
            except ContractError as error:
                raise _refusal(endpoint, function, INVALID, str(error)) from None
            self._readings[id(function)] = known = (function, reading)
        return known[1]

    def _declare(self, endpoint: Endpoint, reading: FunctionReading) -> None:
        recipes = [recipe for _, recipe in self._recipes.values()]
        findings = check_endpoint(endpoint, self._catalog, self._policies, recipes)
        handler = endpoint.handler
        inlined = isinstance(handler, RegisteredFunction) and handler.inline and reading.is_async
        findings += check_behaviour(endpoint, reading.refused, IN_PYTHON, inlined=inlined)
        if isinstance(handler, RegisteredFunction) and handler.target is not None:
            findings += check_streaming(endpoint, handler.target)
        if not has_errors(findings):
            clash = self._claims.claim(endpoint)
            findings += [clash] if clash else []
        _raise_errors(f"{endpoint} cannot be declared", findings)
        self._endpoints.append(endpoint)


def _calling_place() -> Location:
    """Return where the method that calls this one was called: what an App says is said there."""
    caller = sys._getframe(2)
    return Location(caller.f_code.co_filename, caller.f_lineno)


def _refusal(endpoint: str, function: Callable[..., Any], rule: Rule, message: str) -> ContractError:
    """Build the error for a mistake that is found before there is an endpoint to check."""
    return ContractError(f"{endpoint} cannot be declared", [rule.found(f"{endpoint}: {message}", locate(function))])


def _opened(reference: str) -> Catalog:
    catalog, findings = open_catalog(reference)
    if catalog is None:
        raise ContractError(f"the catalog {reference!r} cannot be used", findings)
    return catalog


def _raise_errors(message: str, findings: Sequence[Diagnostic]) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise ContractError(message, errors)

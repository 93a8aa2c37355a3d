"""Procedures that are Python functions: `@app.procedure("quality-check")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from bespeak.app.authoring.declarations import declaring
from bespeak.contract.procedure import Procedure, find_repeated
from bespeak.errors import ContractError
from bespeak.runtime.bindings.procedure import bind_procedure
from bespeak.runtime.functions.reading import locate
from bespeak.runtime.functions.signature import dotted_name

_Function = TypeVar("_Function", bound=Callable[..., Any])


class ProcedureFunctions:
    """The part of an App that declares procedures."""

    @property
    def declared_procedures(self) -> tuple[Procedure, ...]:
        """Procedures that have been declared so far."""
        return tuple(vars(self).get("_procedures", ()))

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
            )
            known = self.declared_procedures
            fault = bind_procedure(declared)
            if find_repeated((*known, declared)) is not None:
                fault = "another procedure has its id"
            if isinstance(fault, str):
                raise ContractError(f"{locate(function)}: the procedure {procedure_id!r} cannot be run: {fault}")
            vars(self)["_procedures"] = (*known, declared)
            return function

        return declare

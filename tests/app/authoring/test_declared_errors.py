from __future__ import annotations

from bespeak.app.authoring.declarations import declare_errors
from bespeak.contract.endpoint import DeclaredError


def test_errors_of_the_decorator_come_first_and_describe_themselves() -> None:
    described = {"taken": "from the docstring", "closed": "closed today"}
    assert declare_errors({"taken": "from the decorator"}, described) == (
        DeclaredError("taken", "from the decorator"),
        DeclaredError("closed", "closed today"),
    )


def test_an_error_that_is_only_named_is_described_by_the_docstring() -> None:
    assert declare_errors(["taken"], {"taken": "from the docstring"}) == (DeclaredError("taken", "from the docstring"),)

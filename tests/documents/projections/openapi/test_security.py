"""Security schemes, and what each operation asks for."""

from __future__ import annotations

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.policy import Policies
from bespeak.documents.projections.openapi.circumstances import Circumstances
from bespeak.documents.projections.openapi.security import security_of, security_schemes
from bespeak.state.identity.settings import MODES


def test_where_headers_are_believed_nothing_is_called_security() -> None:
    served = Circumstances(modes=("open",), policies=Policies())
    assert security_schemes(("open",)) == {}
    assert security_of(make_endpoint("BOOK", "/room", echo, scopes=("room:book",)), served) == []


@pytest.mark.parametrize("mode", MODES[1:])
def test_every_mode_that_proves_something_has_its_scheme(mode: str) -> None:
    (scheme,) = security_schemes((mode,)).values()
    expected = {"token": "http", "mtls": "mutualTLS", "signed": "apiKey"}
    assert scheme["type"] == expected[mode]


@pytest.mark.parametrize(
    ("scopes", "always", "asked"),
    [
        (("room:book",), False, [{"Bearer": ["room:book"]}, {"ClientCertificate": ["room:book"]}]),
        ((), True, [{"Bearer": []}, {"ClientCertificate": []}]),
        ((), False, [{}, {"Bearer": []}, {"ClientCertificate": []}]),
    ],
)
def test_one_proof_of_several_will_do_and_none_where_nothing_is_asked(
    scopes: tuple[str, ...], always: bool, asked: list[dict[str, list[str]]]
) -> None:
    served = Circumstances(modes=("token", "mtls"), policies=Policies(scope_required_for_invocation=always))
    assert security_of(make_endpoint("BOOK", "/room", echo, scopes=scopes), served) == asked

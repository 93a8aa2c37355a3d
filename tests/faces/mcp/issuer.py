"""An authorization server for tests of MCP, and the settings of a server that trusts it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
from tests.service import AGENT
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys

from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.identity.settings import AuthSettings, TokenSettings

ISSUER, RESOURCE = "https://login.example", "https://rooms.example/agents/mcp"


class Issuer:
    """An authorization server as an ASGI application, and the tokens that it was asked for."""

    def __init__(self, folder: Path) -> None:
        self._key = new_key()
        token = TokenSettings(keys=write_keys(folder / "keys.json", public(self._key)), issuer=ISSUER)
        self.document = ServerDocument(
            auth=AuthSettings(modes=("token",), token=token), http=HttpSettings(url="https://rooms.example/agents")
        )
        self.asked: list[dict[str, str]] = []

    def token(self, **changes: Any) -> str:
        now = int(time.time())
        given = claims(**{"agent_id": AGENT, "iss": ISSUER, "exp": now + 600, "iat": now, **changes})
        return str(sign(self._key, given))

    def bearer(self, scope: str, **changes: Any) -> dict[str, str]:
        """Return the header with a token."""
        return {"Authorization": f"Bearer {self.token(scope=scope, **changes)}"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        answer: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }
        if scope["path"] == "/token":
            form = {name: found[0] for name, found in parse_qs((await receive())["body"].decode()).items()}
            self.asked.append(form)
            token = self.token(aud=form["resource"], scope=form["scope"])
            answer = {"access_token": token, "token_type": "Bearer", "scope": form["scope"], "expires_in": 600}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": msgspec.json.encode(answer)})

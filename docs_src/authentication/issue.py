import json
import time
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import ECKey

key = ECKey.import_key(json.loads(Path("issuer.json").read_text()))
now = int(time.time())
claims = {
    "iss": "https://id.acme.example",
    "aud": "desk.acme.example",
    "agent_id": "70ac" * 16,
    "scope": "desk:read",
    "iat": now,
    "exp": now + 600,
}
print(jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key))

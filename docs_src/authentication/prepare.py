import json
import sys
from pathlib import Path

import trustme
from joserfc.jwk import ECKey

authority = trustme.CA()
authority.cert_pem.write_to_path("desk/authority.pem")

server = authority.issue_cert("127.0.0.1", "localhost")
server.cert_chain_pems[0].write_to_path("desk/server.pem")
server.private_key_pem.write_to_path("desk/server.key")

agent = authority.issue_cert(common_name=sys.argv[1])
agent.private_key_and_cert_chain_pem.write_to_path("day.pem")

issuer = ECKey.generate_key("P-256", auto_kid=True)
Path("issuer.json").write_text(json.dumps(issuer.as_dict(private=True)))
Path("desk/issuer.json").write_text(json.dumps({"keys": [issuer.as_dict(private=False)]}))

#!/bin/sh
# Play the first hour of a new user with nothing but a wheel: build it, install it in a new environment, and in an empty
# folder init, serve, curl, an MCP client, a key, a confirmation, the test, diff and export. Stops at the first surprise.
#
#   tools/first_hour.sh FOLDER     play it in a new folder
#
# PYTHON is the interpreter, python3 by default; it needs hatchling. SITE is a folder with the dependencies, for machines
# without a package registry; by default pip installs them.
set -eu

clone=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: tools/first_hour.sh FOLDER}
python=${PYTHON:-python3}
unset PYTHONPATH BESPEAK_KEY BESPEAK_TOKEN || true
mkdir "$folder"
cd "$folder"
folder=$(pwd)
server=

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'first_hour: %s\n' "$*" >&2; exit 1; }
# has TEXT COMMAND...: run the command, print what it says, and expect the text in it. The exit code may be any.
has() { wanted=$1; shift; said=$("$@" 2>&1) || true; printf '$ %s\n%s\n' "$*" "$said"
  case $said in *"$wanted"*) ;; *) fail "expected \"$wanted\" from: $*" ;; esac; }
stop() { [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" || true; server=; }; }
trap stop EXIT
serve() { # serve ARGUMENTS...: start the server and learn its addresses
  stop
  : >serve.out  # or the lines of the server before are read
  bespeak serve "$@" --agtp 127.0.0.1:0 --http 127.0.0.1:0 --log info >serve.out 2>serve.err &
  server=$!
  tries=0
  until grep -q '^HTTP ' serve.out; do
    kill -0 "$server" 2>/dev/null && [ $tries -lt 600 ] || fail "the server did not start: $(cat serve.out serve.err)"
    tries=$((tries + 1)); sleep 0.1
  done
  http=$(sed -n 's|^HTTP  *\(http://[^ ]*\).*|\1|p' serve.out)
  agtp=$(sed -n 's|^AGTP  *\(agtp://[^ ]*\).*|\1|p' serve.out)
}

say "build and install the wheel"
(cd "$clone" && "$python" -m hatchling build -t wheel -d "$folder/dist") >build.log 2>&1 || fail "$(cat build.log)"
if [ -n "${SITE:-}" ]; then
  "$python" -m venv --without-pip env
  packages=$(env/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$python" -m zipfile -e dist/bespeak-*.whl "$packages"
  echo "$SITE" >"$packages/dependencies.pth"
  printf '#!%s\nfrom bespeak.app.cli.main import main\nmain()\n' "$folder/env/bin/python" >env/bin/bespeak
  chmod +x env/bin/bespeak
else
  "$python" -m venv env
  env/bin/python -m pip install -q "$(echo dist/bespeak-*.whl)[mcp]" pytest
fi
PATH=$folder/env/bin:$PATH
has "$folder/env" python -c 'import bespeak; print(bespeak.__file__)'

say "write a service, and check it"
has "bespeak serve cinema" bespeak init cinema
has "nothing found" bespeak lint cinema
cp -r cinema before

say "serve it, and call it without any header"
serve cinema --mcp
has '"seats"' curl -s "$http/seats:query"
has input-validation-failed curl -s --json '{"seat": 7}' -H 'Authority-Scope: tickets:buy' -H "Agent-ID: $(printf '0a3f%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)" "$http/ticket:purchase"
has endpoint-not-found curl -s "$http/nothing"
has '<h1>' curl -s -H 'Accept: text/html' "$http/"
has '404' grep -a ' 404 ' serve.err

say "call it as an MCP client"
cat >client.py <<'END'
import asyncio
import sys

from mcp import Client


async def main() -> None:
    async with Client(sys.argv[1]) as client:
        print([tool.name for tool in (await client.list_tools()).tools])
        print((await client.call_tool("query_seats", {})).structured_content)


asyncio.run(main())
END
has "A1" python client.py "$http/mcp"

say "let only holders of a key in"
stop
printf '\n[auth]\nmodes = ["key"]\n' >>cinema/bespeak.toml
bespeak keys api new cinema --agent ann --scope tickets:buy --expires 1d -o ann.key
has ann bespeak keys api list cinema
serve cinema
has agent-unauthenticated bespeak call "$agtp" PURCHASE /ticket seat=A1 --as ann --scope tickets:buy
has '"seats"' curl -s -H "Authorization: Bearer $(cat ann.key)" "$http/seats:query"

say "buy a ticket, which waits for a decision"
has confirmation-required bespeak call "$agtp" PURCHASE /ticket seat=A1 --key-file ann.key
case_id=$(bespeak cases list cinema --json | python -c 'import json, sys; print(json.load(sys.stdin)[0]["case_id"])')
has "$case_id" bespeak cases accept "$case_id" --by kim cinema
has T-A1 bespeak call "$agtp" PURCHASE /ticket seat=A1 --key-file ann.key -H "Confirmation-ID: $case_id"
stop

say "run its test"
(cd cinema && has passed python -m pytest -q -p no:cacheprovider)

say "change the contract, and see what breaks"
sed -i.bak 's/def find_seats(context: Context, row: str = "")/def find_seats(context: Context, row: str)/' cinema/service.py
has breaking bespeak diff before cinema

say "publish it"
for form in openapi agis; do bespeak export $form before -o "cinema.$form"; done
has openapi head -c 200 cinema.openapi
has "agis" head -c 200 cinema.agis
say "done"

import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointLink, readRoute, readToken, viewLink } from "../../../src/bespeak/faces/console/static/app/lib/routes.js";
import { findEndpoint, groupRows, readRows, searchRows } from "../../../src/bespeak/faces/console/static/app/lib/search.js";

test("every link leads back to what it names", () => {
  for (const path of ["/", "/room", "/rooms/{room_id}/a b", "/ä/%2F", "/a?b#c"]) {
    const found = readRoute(endpointLink("BOOK", path, { body: '{"a": "x&y#z"}' }));
    assert.deepEqual(found, { view: "endpoint", method: "BOOK", path, query: { body: '{"a": "x&y#z"}' } });
  }
  assert.equal(readRoute(viewLink("exchange", "a/b")).id, "a/b");
});

test("an address that names nothing is the list of endpoints", () => {
  for (const hash of ["", "#", "#/", "#/nothing", "#%%%", "#/endpoint", "#/exchange/"]) assert.equal(readRoute(hash).view, "try");
});

test("a token is found in the link, in the printed line and alone", () => {
  const token = "cLjlUnp-XNFSRWD3WQP_9uk9QRdCPQxhXaJl2QDyHEE";
  for (const text of [`#token=${token}`, `OPEN  http://127.0.0.1:8080/console/#token=${token}`, ` ${token}\n`]) assert.equal(readToken(text), token);
  for (const text of ["", "#/live", "#token=", "http://127.0.0.1:8080/console/"]) assert.equal(readToken(text), null);
});

const ROWS = readRows([
  ["QUERY", "/rooms", "Find rooms.", "informational", "rooms", false, false, false, []],
  ["FETCH", "/rooms/{room_id}", "Fetch a room.", "informational", "rooms", false, false, false, []],
  ["BOOK", "/room", "Book a room.", "irreversible", "stays", false, false, false, ["booking:room"]],
  ["PLAN", "/", "Plan calls for rooms.", "informational", "floor", false, false, true, []],
]);

test("a search wants every word and shows first what begins with it", () => {
  assert.deepEqual(searchRows(ROWS, "ROOM").map((row) => row.method), ["QUERY", "FETCH", "BOOK", "PLAN"]);
  assert.deepEqual(searchRows(ROWS, "plan rooms").map((row) => row.method), ["PLAN"]);
  assert.deepEqual(searchRows(ROWS, "", { impact: "irreversible" }).map((row) => row.method), ["BOOK"]);
});

test("what every server has comes last", () => {
  assert.deepEqual(groupRows([ROWS[3], ROWS[0], ROWS[2]]).map(([name]) => name), ["rooms", "stays", "on every server"]);
});

test("a call with filled parameters belongs to its endpoint", () => {
  assert.equal(findEndpoint(ROWS, "FETCH", "/rooms/12?fields=a").path, "/rooms/{room_id}");
  assert.equal(findEndpoint(ROWS, "FETCH", "/rooms/"), undefined);
});

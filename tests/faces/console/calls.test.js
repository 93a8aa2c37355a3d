import assert from "node:assert/strict";
import { test } from "node:test";
import { NOBODY, applyRemedy, missingScopes, readCall, readProgress, workOf, writeCall } from "../../../src/bespeak/faces/console/static/app/lib/call.js";
import { deriveAgent, fillKey, fillPath, literal, quote, writeCopies } from "../../../src/bespeak/faces/console/static/app/lib/copy.js";

const SESSION = { agtp: "agtp://127.0.0.1:4480", http: "http://127.0.0.1:8080", mcp: true };

test("a call says who makes it, and leaves out what is empty", () => {
  const caller = { ...NOBODY, name: "ann", agentId: "f".repeat(64), scopes: "a:b  c:d,a:b", bearer: "key" };
  assert.deepEqual(writeCall("BOOK", "/room", { input: { a: 1 }, headers: [["Task-ID", "t"], ["", "x"]] }, caller),
    { method: "BOOK", path: "/room", input: { a: 1 }, as: "ann", scopes: ["a:b", "c:d"], headers: { "Task-ID": "t", Authorization: "Bearer key" } });
  assert.deepEqual(writeCall("FIND", "/a", { input: {}, headers: [] }, NOBODY), { method: "FIND", path: "/a", input: {} });
});

test("a remedy changes the call, and the form shows the change", () => {
  const call = { method: "BOOKS", path: "/room", input: { a: 1 }, as: "ann" };
  const changed = applyRemedy(call, { method: "BOOK", scopes: ["a:b"], headers: { "Confirmation-ID": "7" } });
  assert.deepEqual(changed, { ...call, method: "BOOK", scopes: ["a:b"], headers: { "Confirmation-ID": "7" } });
  const { draft, caller } = readCall({ ...changed, headers: { ...changed.headers, Authorization: "Bearer x" } }, NOBODY);
  assert.deepEqual(draft, { input: { a: 1 }, headers: [["Confirmation-ID", "7"]] });
  assert.equal(caller.scopes, "a:b");
});

test("scopes with a star cover others", () => {
  assert.deepEqual(missingScopes(["booking:room", "calendar:write"], "booking:*"), ["calendar:write"]);
});

test("work that goes on is followed until it has ended", () => {
  const answer = { status: 202, body: { look: { method: "CHECK", parameters: { target: "job-1" } } } };
  assert.equal(workOf(answer), "job-1");
  assert.equal(workOf({ status: 200, body: {} }), null);
  const going = readProgress({ status: 200, body: { status: "running", details: { progress: { done: 3, total: 9, unit: "rows" } } } });
  assert.deepEqual([going.goesOn, going.done, going.total], [true, 3, 9]);
  const done = readProgress({ status: 200, body: { status: "done", details: { result: { rows: 9 } } } });
  assert.deepEqual([done.goesOn, done.good, done.result], [false, true, { rows: 9 }]);
  assert.equal(readProgress({ status: 404, refused: true, body: {}, error: { message: "gone" } }).error.message, "gone");
});

test("a call can be copied in every way, and no credential is in it", () => {
  const call = { method: "FETCH", path: "/rooms/{id}", input: { id: "a b", why: "it's" }, as: "ann", scopes: ["a:b"], headers: { Authorization: "Bearer real" } };
  const texts = writeCopies(call, SESSION, { http: "GET /rooms/{id}:fetch", tool: "fetch_room" }, "ab".repeat(32));
  assert.deepEqual(Object.keys(texts).sort(), ["AGTP", "MCP", "Python", "bespeak call", "curl"]);
  assert.ok(texts["bespeak call"].startsWith("bespeak call agtp://127.0.0.1:4480 FETCH /rooms/a%20b -d '{\"why\":\"it'\"'\"'s\"}' --as=ann --scope=a:b"));
  assert.ok(texts.AGTP.includes("Content-Length: 14\n\n{\"why\":\"it's\"}"));
  assert.ok(texts.curl.endsWith("http://127.0.0.1:8080/rooms/a%20b:fetch"));
  assert.equal(JSON.parse(texts.MCP).params.name, "fetch_room");
  for (const text of Object.values(texts)) assert.ok(!text.includes("Bearer real"));
});

test("texts are quoted for the shell and for Python", () => {
  assert.equal(quote("a'; rm -rf $HOME"), `'a'"'"'; rm -rf $HOME'`);
  assert.equal(fillKey("bespeak queues show KEY", "$&; curl x|sh"), "bespeak queues show '$&; curl x|sh'");
  assert.equal(literal({ a: [true, null, 1.5], "b'": "\n" }), `{"a": [True, None, 1.5], "b'": "\\n"}`);
  assert.deepEqual(fillPath("/a/{x}", { x: "../b" }), ["/a/..%2Fb", {}]);
});

test("a name has the Agent-ID that the server derives", async () => {
  assert.equal(await deriveAgent("ann"), "722f5df09bd90e3ff637fd07574398f76264d28a0329c1e3159689e5c1b16e2e");
});

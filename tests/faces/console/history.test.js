import assert from "node:assert/strict";
import { test } from "node:test";
import { layOut } from "../../../src/bespeak/faces/console/static/app/lib/graph.js";
import { addEntry, compareEntries, exportEntries, makeEntry, togglePin } from "../../../src/bespeak/faces/console/static/app/lib/history.js";
import { addReport, fillSeconds, rateOf, readEvents, roundUp } from "../../../src/bespeak/faces/console/static/app/lib/series.js";

const call = { method: "ISSUE", path: "/keys", input: { name: "ci", pin: "4711", password: "hunter2" }, headers: { Authorization: "Bearer abc", "Task-ID": "t" }, confirmed: true };
const answer = { status: 200, reason: "OK", gates: [{ gate: "scope", verdict: "passed" }], headers: [["Server-ID", "a"]], remedies: [], body: { api_key: "sk-secret", id: 1 },
  request: 'AGTP/1.0 ISSUE /keys\nAuthorization: Bearer abc\n\n{"name":"ci","pin":"4711","password":"hunter2"}', response: 'AGTP/1.0 200 OK\nServer-ID: a\n\n{"api_key":"sk-secret","id":1}' };

test("an entry keeps the exchange and nothing secret of it", () => {
  const text = JSON.stringify(makeEntry(call, answer, ["pin"], 0));
  for (const secret of ["abc", "4711", "hunter2", "sk-secret", "confirmed"]) assert.ok(!text.includes(secret), secret);
  for (const kept of ["ci", "Task-ID", "ISSUE", "Server-ID"]) assert.ok(text.includes(kept), kept);
  assert.ok(!exportEntries([makeEntry(call, answer, ["pin"], 0)], "a.example").includes("hunter2"));
});

test("a message without secrets is kept as it was sent", () => {
  const plain = { ...answer, body: { id: 1 }, response: "AGTP/1.0 200 OK\n\n{\"id\":1}" };
  assert.equal(makeEntry({ ...call, input: {} }, { ...plain, request: "AGTP/1.0 ISSUE /keys\n\n" }, [], 0).answer.response, plain.response);
  assert.ok(makeEntry(call, { ...plain, response: `a\n\n${"x".repeat(50_000)}` }, [], 0).answer.response.length < 13_000);
});

test("the oldest entry goes first, but not one that is pinned", () => {
  let entries = [];
  for (let at = 0; at < 5; at += 1) {
    entries = addEntry(entries, { id: String(at), pinned: false }, 3);
    if (at === 0) entries = togglePin(entries, "0");
  }
  assert.deepEqual(entries.map((one) => one.id), ["4", "3", "0"]);
});

test("two exchanges differ in what differs", () => {
  const left = makeEntry({ ...call, input: { a: { b: 1 } } }, answer, [], 0), right = makeEntry({ ...call, input: { a: { b: 2 } } }, { ...answer, status: 404 }, [], 0);
  assert.deepEqual(compareEntries(left, right), [{ name: "call.input.a.b", left: "1", right: "2" }, { name: "status", left: "200", right: "404" }]);
  assert.deepEqual(compareEntries(left, left), []);
});

const report = (seen) => ({ seen, shown: [{}], counts: { ok: seen - 1, refused: 1, failed: 0 }, ms: { p50: 1, p99: 9 } });

test("reports of one second are one bar, and a minute is kept", () => {
  let buckets = [];
  for (let at = 0; at < 100; at += 1) buckets = addReport(buckets, report(10), 1_000_000 + at * 1000);
  assert.equal(buckets.length, 60);
  buckets = addReport(buckets, report(10), 1_099_500);
  assert.deepEqual([buckets.at(-1).seen, buckets.at(-1).shown], [20, 2]);
  assert.equal(fillSeconds(buckets, 1_109_000).filter((one) => one === null).length, 10);
  assert.equal(rateOf(buckets, 1_100_000), 12);
  assert.deepEqual([0, 1, 3, 51, 1000].map(roundUp), [1, 1, 5, 100, 1000]);
});

test("an event stream is read in any pieces", () => {
  const text = ": \n\nevent: exchanges\ndata: {\"a\":1}\n\nevent: exchanges\ndata: {\"a\":2}\n\n";
  for (let size = 1; size < 20; size += 1) {
    const found = [];
    let rest = "";
    for (let at = 0; at < text.length; at += size) {
      const [events, left] = readEvents(rest + text.slice(at, at + size));
      rest = left;
      found.push(...events.map((one) => one.data));
    }
    assert.deepEqual(found, ['{"a":1}', '{"a":2}']);
  }
});

test("edges of a drawing go to the right, and a circle ends", () => {
  const nodes = ["a", "b", "c"].map((id) => ({ id, label: id }));
  const { nodes: placed, width } = layOut(nodes, [["a", "b"], ["b", "c"], ["a", "c"]]);
  assert.ok(placed[0].x < placed[1].x && placed[1].x < placed[2].x && width > placed[2].x);
  assert.equal(layOut(nodes, [["a", "b"], ["b", "a"], ["x", "a"]]).edges.length, 2);
  assert.equal(layOut([], []).nodes.length, 0);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson } from "../../../src/bespeak/faces/console/static/app/lib/forgiving.js";
import { blank, secretNames, shapeOf, variantOf } from "../../../src/bespeak/faces/console/static/app/lib/schema.js";

const CARD = { type: "object", properties: { kind: { const: "card" }, number: { type: "string" } }, required: ["kind", "number"] };
const CASH = { type: "object", title: "Cash", properties: { kind: { const: "cash" } }, required: ["kind"] };
const TREE = { $defs: { node: { type: "object", properties: { name: { type: "string" }, below: { type: "array", items: { $ref: "#/$defs/node" } } }, required: ["name"] } }, $ref: "#/$defs/node" };

test("each type has its own control", () => {
  const kinds = (schema) => shapeOf(schema, schema).kind;
  assert.equal(kinds({ type: "string" }), "string");
  assert.equal(kinds({ type: "string", maxLength: 5000 }), "text");
  assert.equal(kinds({ type: ["integer", "null"] }), "integer");
  assert.equal(kinds({ type: "boolean" }), "boolean");
  assert.equal(kinds({ enum: ["a", 1] }), "enum");
  assert.equal(kinds({ oneOf: [{ const: "a" }, { const: "b" }] }), "enum");
  assert.equal(kinds({ oneOf: [CARD, CASH] }), "choice");
  assert.equal(kinds({ anyOf: [{ type: "string" }, { type: "null" }] }), "string");
  assert.equal(kinds({ type: "array", items: {} }), "array");
  assert.equal(kinds(TREE), "object");
  for (const odd of [true, {}, null, { $ref: "#/nowhere" }, { $ref: "#" }, { type: "object" }]) assert.equal(kinds(odd), "json");
});

test("members that are required come first, and null can be chosen where it is allowed", () => {
  const shape = shapeOf({ properties: { b: {}, a: {} }, required: ["a"] }, {});
  assert.deepEqual(shape.properties.map((one) => [one.name, one.required]), [["a", true], ["b", false]]);
  assert.equal(shapeOf({ type: ["string", "null"] }, {}).nullable, true);
});

test("allOf is one object, and a variant keeps the members beside it", () => {
  const joined = shapeOf({ allOf: [{ properties: { a: { type: "string" } }, required: ["a"] }, { properties: { b: {} } }] }, {});
  assert.deepEqual(joined.properties.map((one) => one.name), ["a", "b"]);
  const choice = shapeOf({ type: "object", properties: { x: {} }, oneOf: [CARD, CASH] }, {});
  assert.deepEqual(shapeOf(choice.variants[0].schema, {}).properties.map((one) => one.name), ["kind", "number", "x"]);
});

test("the variant that a value looks like is chosen", () => {
  const shape = shapeOf({ oneOf: [CARD, CASH] }, {});
  assert.deepEqual(shape.variants.map((one) => one.label), ["card", "Cash"]);
  assert.equal(variantOf(shape, { kind: "cash" }, {}), 1);
  assert.equal(variantOf(shape, { kind: "card", number: "1" }, {}), 0);
});

test("a new value has what is required and ends where a schema refers to itself", () => {
  assert.deepEqual(blank({ oneOf: [CASH] }, {}), { kind: "cash" });
  const endless = { $defs: { a: { type: "object", properties: { a: { $ref: "#/$defs/a" } }, required: ["a"] } }, $ref: "#/$defs/a" };
  assert.ok(JSON.stringify(blank(endless, endless)).length < 100);
  assert.deepEqual(secretNames({ properties: { pin: { type: "string", writeOnly: true }, in: { properties: { pass: { type: "string", format: "password" } } } } }, {}), ["pin", "pass"]);
});

test("strict JSON is read strictly", () => {
  assert.deepEqual(readJson('{"a": [1, "\\u00e4"]}'), { value: { a: [1, "ä"] }, corrected: false });
});

test("JSON as people paste it is read", () => {
  const wanted = { a: "it's", b: [1, -2.5, true, null], c: { d: 'say "hi"' } };
  for (const text of [
    `{a: "it's", b: [1, -2.5, True, None,], c: {'d': 'say "hi"'},}`,
    '```json\n{"a": "it\'s", // a comment\n "b": [1, -2.5, true, null], /* another */ "c": {"d": "say \\"hi\\""}}\n```',
    'AGTP/1.0 BOOK /room\nContent-Type: application/json\n\n{"a": "it\'s", "b": [1, -2.5, true, null], "c": {"d": "say \\"hi\\""}}',
    'payload = {"a": "it\'s", "b": [1, -2.5, true, null], "c": {"d": "say \\"hi\\""}};',
  ]) assert.deepEqual(readJson(text), { value: wanted, corrected: true }, text);
});

test("what is not JSON is said, whatever it is", () => {
  for (const text of ["", "{", "[1", "{a}", "{a: }", "nothing", "{'a: 1}", "[".repeat(100_000), "{a:".repeat(100_000), "'".repeat(10_000)]) {
    assert.ok("error" in readJson(text), text.slice(0, 20));
  }
});

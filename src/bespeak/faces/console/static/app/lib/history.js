// Own exchanges, kept by the browser: the last 200, and those that are pinned. Nothing secret is in them.
import { isObject } from "./schema.js";

export const MOST = 200;
const LONGEST = 12_000; // characters of a text that is kept
const SECRET = /authorization|password|passwd|secret|token|api[-_]?key|private[-_]?key|credential/i;
const HIDDEN = "(not kept)";

/** @typedef {{id: string, at: number, pinned: boolean, call: Record<string, any>, answer: Record<string, any>}} Entry */

/** Make an entry of a call and its answer. @param {Record<string, any>} call @param {Record<string, any>} answer
 * @param {string[]} secrets  names of members that the contract marks as secret @param {number} at @returns {Entry} */
export function makeEntry(call, answer, secrets, at) {
  const { confirmed: _, headers = {}, ...rest } = call;
  const input = redact(call.input ?? {}, secrets);
  const body = redact(answer.body, secrets);
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !SECRET.test(name)));
  return {
    id: `${at.toString(36)}${Math.random().toString(36).slice(2, 6)}`, at, pinned: false,
    call: { ...rest, input, ...(Object.keys(kept).length ? { headers: kept } : {}) },
    answer: { ...answer, body: shorten(body), request: message(answer.request, call.input, input),
      response: message(answer.response, answer.body, body), remedies: answer.remedies ?? [] },
  };
}

/** Replace the values of secret members. @param {any} value @param {string[]} names @returns {any} */
export function redact(value, names = [], depth = 0) {
  if (depth > 40) return HIDDEN;
  if (Array.isArray(value)) return value.map((one) => redact(one, names, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name,
    isSecret(name, one, names) ? HIDDEN : redact(one, names, depth + 1)]));
}

/** Numbers such as `tokens: 512` are counts; only the contract makes a number a secret. @param {string} name @param {any} one @param {string[]} names */
const isSecret = (name, one, names) => (typeof one === "string" && (names.includes(name) || SECRET.test(name))) || (typeof one === "number" && names.includes(name));

/** Return the text of a message with the body as it is kept. @param {string} text @param {any} sent @param {any} kept */
function message(text, sent, kept) {
  const same = JSON.stringify(sent) === JSON.stringify(kept);
  const head = String(text ?? "").split("\n\n", 1)[0].replace(/^(authorization|agent-signature): .*$/gim, `$1: ${HIDDEN}`);
  // A body that could not be read as JSON may hold anything, so it is kept only where it was read.
  if (!same) return `${head}\n\n${HIDDEN}`;
  const body = String(text ?? "").slice(String(text ?? "").split("\n\n", 1)[0].length);
  return cut(head + body);
}

/** @param {string} text */
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}\n(cut: ${text.length} characters)` : text);
/** @param {any} value */
const shorten = (value) => ((JSON.stringify(value) ?? "").length > LONGEST ? undefined : value);

/** Add an entry; the oldest that is not pinned goes if there are too many. @param {Entry[]} entries @param {Entry} entry */
export function addEntry(entries, entry, most = MOST) {
  const all = [entry, ...entries];
  while (all.length > most) {
    const last = all.findLastIndex((one) => !one.pinned);
    all.splice(last < 1 ? all.length - 1 : last, 1);
  }
  return all;
}

/** @param {Entry[]} entries @param {string} id */
export const togglePin = (entries, id) => entries.map((one) => (one.id === id ? { ...one, pinned: !one.pinned } : one));

/** Compare two exchanges: every member that differs, by its path. @param {Entry} left @param {Entry} right */
export function compareEntries(left, right) {
  const parts = (/** @type {Entry} */ one) => flatten({
    call: one.call, status: one.answer.status, reason: one.answer.reason, body: one.answer.body ?? null,
    headers: Object.fromEntries((one.answer.headers ?? []).map((/** @type {string[]} */ [name, value]) => [name, value])),
    gates: Object.fromEntries((one.answer.gates ?? []).map((/** @type {any} */ gate) => [gate.gate, gate.verdict])),
  });
  const a = parts(left), b = parts(right);
  return [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name))
    .map((name) => ({ name, left: a.get(name), right: b.get(name) }));
}

/** List every leaf of a value by its path. @param {any} value @param {string} at @param {Map<string, string>} found */
export function flatten(value, at = "", found = new Map()) {
  if (found.size > 2000) return found;
  if (typeof value === "object" && value !== null && Object.keys(value).length) {
    for (const [name, one] of Object.entries(value)) flatten(one, at ? `${at}.${name}` : name, found);
  } else if (value !== undefined) found.set(at, typeof value === "string" ? value : JSON.stringify(value));
  return found;
}

/** Write entries as a document to keep. @param {Entry[]} entries @param {string} service */
export const exportEntries = (entries, service) =>
  JSON.stringify({ service, exchanges: entries.map(({ id, at, call, answer }) => ({ id, at: new Date(at).toISOString(), call, answer })) }, null, 2);

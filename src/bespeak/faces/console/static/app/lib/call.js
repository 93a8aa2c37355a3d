// A call before it is sent: what the person has entered, and the body that the server takes.

/** @typedef {{input: Record<string, any>, headers: [string, string][]}} Draft  what belongs to one endpoint
 * @typedef {{by: "name" | "id", name: string, agentId: string, scopes: string, bearer: string}} Caller  who calls, for all */

export const EMPTY = Object.freeze({ input: {}, headers: [] });
export const NOBODY = Object.freeze({ by: "name", name: "", agentId: "", scopes: "", bearer: "" });
/** Headers that the server takes from the console. */
export const HEADERS = ["Idempotency-Key", "Confirmation-ID", "Task-ID", "Session-ID", "Request-ID", "Budget-Limit",
  "Delegation-Chain", "Prefer", "Semantic-Profile", "Method-Grammar", "Principal-ID"];

/** @param {string} text */
export const splitScopes = (text) => [...new Set(text.split(/[\s,]+/).filter(Boolean))];

/** Return the body of `exchange` for a call. @param {string} method @param {string} path @param {Draft} draft
 * @param {Caller} caller @returns {Record<string, any>} */
export function writeCall(method, path, draft, caller) {
  const headers = Object.fromEntries(draft.headers.filter(([name, value]) => name.trim() && value.trim()));
  if (caller.bearer) headers.Authorization = `Bearer ${caller.bearer}`;
  const scopes = splitScopes(caller.scopes);
  return {
    method, path, input: draft.input,
    ...(caller.by === "name" && caller.name.trim() ? { as: caller.name.trim() } : {}),
    ...(caller.by === "id" && caller.agentId.trim() ? { agent_id: caller.agentId.trim() } : {}),
    ...(scopes.length ? { scopes } : {}),
    ...(Object.keys(headers).length ? { headers } : {}),
  };
}

/** Return a call as a remedy of the server changes it. @param {Record<string, any>} call @param {Record<string, any>} change */
export function applyRemedy(call, change) {
  const headers = { ...call.headers, ...change.headers };
  if (headers["Idempotency-Key"] === "console-1") headers["Idempotency-Key"] = freshKey();
  return { ...call, ...change, ...(Object.keys(headers).length ? { headers } : {}) };
}

/** Make a key that no other call has. */
export const freshKey = () => `console-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;

/** Take a call apart again: what belongs to the endpoint, and who calls. @param {Record<string, any>} call
 * @param {Caller} caller  kept where the call does not say */
export function readCall(call, caller) {
  const headers = Object.entries(call.headers ?? {}).filter(([name]) => name.toLowerCase() !== "authorization");
  return {
    draft: { input: call.input ?? {}, headers },
    caller: { ...caller, ...(call.agent_id ? { by: "id", agentId: call.agent_id } : {}),
      ...(call.as ? { by: "name", name: call.as } : {}), scopes: (call.scopes ?? []).join(", ") },
  };
}

/** Return the scopes that an endpoint needs and a caller does not declare. @param {string[]} required @param {string} declared */
export function missingScopes(required, declared) {
  const own = splitScopes(declared);
  return required.filter((scope) => !own.some((one) => covers(one, scope)));
}

/** @param {string} granted @param {string} wanted */
function covers(granted, wanted) {
  const have = granted.split(":"), want = wanted.split(":");
  if (have.length > want.length || (have.length < want.length && have.at(-1) !== "*")) return false;
  return have.every((part, at) => part === "*" || part === want[at]);
}

const GOING_ON = new Set(["queued", "running", "waiting", "sleeping", "cancelling"]);

/** Return the id under which CHECK shows work that goes on after the answer. @param {any} answer */
export function workOf(answer) {
  const look = answer.status === 202 ? answer.body?.look : null;
  return look?.method === "CHECK" && typeof look.parameters?.target === "string" ? look.parameters.target : null;
}

/** Read what CHECK says of work. @param {any} answer */
export function readProgress(answer) {
  const told = answer.status === 200 && answer.body ? answer.body.result ?? answer.body : {};
  const details = told.details ?? {}, progress = details.progress ?? {};
  const state = answer.refused ? "unknown" : String(told.status ?? "unknown");
  return {
    state, goesOn: GOING_ON.has(state), good: state === "done" || state === "completed",
    done: progress.done ?? 0, total: progress.total ?? null, unit: progress.unit ?? "",
    result: details.result, error: details.error ?? told.error ?? answer.error,
  };
}

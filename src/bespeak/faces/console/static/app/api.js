// The JSON API of the server, and the credential that it needs.
import { readEvents } from "./lib/series.js";

const TOKEN = "bespeak.console.token", BEARER = "bespeak.console.bearer";
/** @type {{token: string | null, bearer: string | null}} */
const held = { token: sessionStorage.getItem(TOKEN), bearer: sessionStorage.getItem(BEARER) };

/** Keep the token of the printed link for this tab. @param {string} token */
export function keepToken(token) {
  held.token = token;
  sessionStorage.setItem(TOKEN, token);
}

/** Use a credential; it outlives a reload only if the person wants it. @param {string} bearer @param {boolean} stays */
export function useBearer(bearer, stays) {
  held.bearer = bearer;
  if (stays) sessionStorage.setItem(BEARER, bearer);
  else sessionStorage.removeItem(BEARER);
}

/** The server has refused, or did not answer. */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {string} at */
  constructor(status, code, message, at = "") {
    super(message);
    Object.assign(this, { status, code, at });
  }
}

/** @param {string} name @param {RequestInit & {headers?: Record<string, string>}} options */
async function request(name, options = {}) {
  const headers = { ...options.headers };
  if (held.token) headers["Console-Token"] = held.token;
  if (held.bearer) headers.Authorization = `Bearer ${held.bearer}`;
  let reply;
  try {
    reply = await fetch(`api/${name}`, { ...options, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (/** @type {Error} */ (error).name === "AbortError") throw error;
    throw new ApiError(0, "no-answer", "The server does not answer. Is it still running?");
  }
  if (reply.ok) return reply;
  const told = await reply.json().catch(() => null);
  const error = told?.error;
  if (!error && reply.status === 404) throw new ApiError(404, "no-view", "This server does not have this view.");
  throw new ApiError(reply.status, error?.code ?? "error", error?.message ?? `The server answers ${reply.status}.`, error?.at);
}

/** Read a view. @param {string} name @param {Record<string, string>} [query] */
export async function get(name, query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  const reply = await request(asked ? `${name}?${asked}` : name);
  return /json/.test(reply.headers.get("content-type") ?? "") ? reply.json() : reply.text();
}

/** Act: call an endpoint, decide a case. @param {string} name @param {any} body */
export async function post(name, body) {
  const reply = await request(name, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  return reply.json();
}

/** Watch exchanges until `signal` ends it. @param {Record<string, string>} filters @param {(report: any) => void} see
 * @param {AbortSignal} signal @param {() => void} begun */
export async function watch(filters, see, signal, begun) {
  const asked = new URLSearchParams(Object.entries(filters).filter(([, value]) => value)).toString();
  const reply = await request(asked ? `live?${asked}` : "live", { signal });
  begun();
  const reader = /** @type {ReadableStream<any>} */ (reply.body).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const [events, rest] = readEvents(text + value);
    text = rest;
    for (const one of events) if (one.event === "exchanges") see(JSON.parse(one.data));
  }
}

// A call as text to copy, in the ways in which people and agents make it. Nothing is sent.

/** @typedef {{method: string, path: string, input: Record<string, any>, as?: string, agent_id?: string,
 *   scopes?: string[], headers?: Record<string, string>}} Call */

/** Write a call in every way that the service offers. @param {Call} call @param {any} session
 * @param {{http?: string, tool?: string | null}} endpoint @param {string} agent  the Agent-ID, if one is known
 * @returns {Record<string, string>} */
export function writeCopies(call, session, endpoint, agent) {
  const address = session.agtp ?? session.http;
  /** @type {Record<string, string>} */
  const texts = { "bespeak call": command(call, address), Python: python(call, address), AGTP: wire(call, agent) };
  if (session.http && endpoint.http) texts.curl = curl(call, session.http, endpoint.http, agent);
  if (session.mcp && endpoint.tool) texts.MCP = tool(call, endpoint.tool);
  return texts;
}

/** Put values into the parameters of a path; the rest is the body. @param {string} path @param {Record<string, any>} input
 * @returns {[string, Record<string, any>]} */
export function fillPath(path, input) {
  const rest = { ...input };
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = rest[name];
    delete rest[name];
    return value === undefined || value === "" ? name.toUpperCase() : encodeURIComponent(String(value));
  });
  return [filled, rest];
}

/** Return the Agent-ID that the server derives from a name; null where the browser cannot. @param {string} name */
export async function deriveAgent(name) {
  if (!globalThis.crypto?.subtle) return null;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`bespeak --as ${name}`));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Call} call @param {string} agent @returns {[string, string][]} */
function headersOf(call, agent) {
  /** @type {[string, string][]} */
  const headers = Object.entries(call.headers ?? {}).map(([name, value]) => [name, name === "Authorization" ? "Bearer YOUR-TOKEN" : value]);
  if (agent) headers.push(["Agent-ID", agent]);
  if (call.scopes?.length) headers.push(["Authority-Scope", call.scopes.join(", ")]);
  return headers;
}

/** Quote a word for a shell. @param {string} word */
export const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

/** Put the key of a row into the command of an action. @param {string} command @param {string} key */
export const fillKey = (command, key) => command.replace("KEY", () => quote(key));

/** @param {Call} call @param {string} address */
function command(call, address) {
  const [path, rest] = fillPath(call.path, call.input);
  const words = ["bespeak", "call", address, call.method, path];
  if (Object.keys(rest).length) words.push("-d", JSON.stringify(rest));
  if (call.as) words.push(`--as=${call.as}`);
  if (call.agent_id) words.push(`--agent-id=${call.agent_id}`);
  for (const scope of call.scopes ?? []) words.push(`--scope=${scope}`);
  for (const [name, value] of headersOf({ ...call, scopes: [] }, "")) words.push("-H", `${name}: ${value}`);
  return words.map(quote).join(" ");
}

/** @param {Call} call @param {string} base @param {string} route @param {string} agent */
function curl(call, base, route, agent) {
  const [path, rest] = fillPath(route.slice(route.indexOf(" ") + 1), call.input);
  const words = ["curl", "--json", JSON.stringify(rest)];
  for (const [name, value] of headersOf(call, agent)) words.push("-H", `${name}: ${value}`);
  return [...words, base + path].map(quote).join(" ");
}

/** @param {Call} call @param {string} agent */
function wire(call, agent) {
  const [path, rest] = fillPath(call.path, call.input);
  const body = Object.keys(rest).length ? JSON.stringify(rest) : "";
  const lines = [`AGTP/1.0 ${call.method} ${path}`, ...headersOf(call, agent).map(([name, value]) => `${name}: ${value}`)];
  if (body) lines.push("Content-Type: application/vnd.agtp+json");
  lines.push(`Content-Length: ${new TextEncoder().encode(body).length}`);
  return `${lines.join("\n")}\n\n${body}`;
}

/** @param {Call} call @param {string} name */
function tool(call, name) {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: call.input } }, null, 2);
}

/** @param {Call} call @param {string} address */
function python(call, address) {
  const [path, rest] = fillPath(call.path, call.input);
  const options = [literal(address)];
  if (call.as) options.push(`as_=${literal(call.as)}`);
  if (call.agent_id) options.push(`agent_id=${literal(call.agent_id)}`);
  if (call.scopes?.length) options.push(`scopes=${literal(call.scopes)}`);
  const given = Object.keys(rest).length ? `, ${literal(rest)}` : "";
  const headers = Object.fromEntries(headersOf({ ...call, scopes: [] }, ""));
  const more = Object.keys(headers).length ? `, headers=${literal(headers)}` : "";
  return `import bespeak\n\nwith bespeak.connect_sync(${options.join(", ")}) as service:\n` +
    `    print(service.request(${literal(call.method)}, ${literal(path)}${given}${more}).output)`;
}

/** Write a value in Python. @param {any} value @returns {string} */
export function literal(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${literal(name)}: ${literal(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}


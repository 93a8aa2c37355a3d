// Addresses inside the page: what is after the #. Everything that can be looked at has one.

/** @typedef {{view: string, method?: string, path?: string, id?: string, query: Record<string, string>}} Route */

export const VIEWS = ["live", "panels", "contract", "history"];

/** Read a route from the part of an address after the #. An unknown one is the list of endpoints.
 * @param {string} hash @returns {Route} */
export function readRoute(hash) {
  const [place, asked = ""] = split(hash.replace(/^#/, ""), "?");
  const query = Object.fromEntries(new URLSearchParams(asked));
  const [view, ...rest] = place.replace(/^\//, "").split("/").map(decode);
  if (view === "endpoint" && rest[0]) return { view: "endpoint", method: rest[0], path: `/${rest.slice(1).join("/")}`, query };
  if (view === "exchange" && rest[0]) return { view, id: rest[0], query };
  if (VIEWS.includes(view)) return { view, ...(rest[0] ? { id: rest[0] } : {}), query };
  return { view: "try", query };
}

/** Write the address of an endpoint, with what its form shall hold.
 * @param {string} method @param {string} path @param {Record<string, string>} [query] */
export function endpointLink(method, path, query = {}) {
  const segments = path.replace(/^\//, "").split("/").map(encodeURIComponent).join("/");
  return `#/endpoint/${encodeURIComponent(method)}/${segments}${writeQuery(query)}`;
}

/** @param {string} view @param {string} [id] @param {Record<string, string>} [query] */
export function viewLink(view, id, query = {}) {
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}${writeQuery(query)}`;
}

/** Read the token from the address that the command has printed; null if it has none. @param {string} text */
export function readToken(text) {
  return /(?:^|[#&])token=([\w-]{16,200})/.exec(text)?.[1] ?? (/^[\w-]{32,200}$/.test(text.trim()) ? text.trim() : null);
}

/** @param {Record<string, string>} query */
function writeQuery(query) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return text && `?${text}`;
}

/** @param {string} text @param {string} mark */
function split(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

/** @param {string} segment */
function decode(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

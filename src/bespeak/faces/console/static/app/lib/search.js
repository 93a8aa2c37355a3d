// The list of endpoints: which rows fit a search, by group. Made for 10,000 rows.

/** @typedef {{method: string, path: string, intent: string, impact: string, namespace: string, deprecated: boolean,
 *   internal: boolean, basic: boolean, scopes: string[], text: string}} Row */

export const IMPACTS = {
  informational: "only reads",
  reversible: "can be undone",
  irreversible: "cannot be undone",
};

const MOST_VALUES = 200; // of a filter: a longer list is not a choice any more
const BASIC = "on every server";

/** Name the fields of the rows that the server sends. @param {any[][]} rows @returns {Row[]} */
export function readRows(rows) {
  return rows.map(([method, path, intent, impact, namespace, deprecated, internal, basic, scopes]) => ({
    method, path, intent, impact, namespace, deprecated, internal, basic, scopes,
    text: `${method} ${path} ${intent} ${namespace}`.toLowerCase(),
  }));
}

/** Return the rows that hold every word and fit the filters. Rows whose method or path begins with it come first.
 * @param {Row[]} rows @param {string} words @param {{impact?: string, namespace?: string, method?: string}} wanted */
export function searchRows(rows, words, wanted = {}) {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter((row) =>
    (!wanted.impact || row.impact === wanted.impact) && (!wanted.method || row.method === wanted.method) &&
    (!wanted.namespace || row.namespace === wanted.namespace) && parts.every((part) => row.text.includes(part)));
  if (!parts.length) return found;
  const first = (/** @type {Row} */ row) => (row.text.startsWith(parts[0]) || row.path.startsWith(parts[0]) ? 0 : 1);
  return found.map((row, at) => ({ row, at })).sort((a, b) => first(a.row) - first(b.row) || a.at - b.at).map((one) => one.row);
}

/** Group rows by namespace, the methods that every server has last. @param {Row[]} rows */
export function groupRows(rows) {
  const groups = new Map();
  for (const row of rows) {
    const name = row.basic ? BASIC : row.namespace || "Endpoints";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return [...groups].sort(([a], [b]) => Number(a === BASIC) - Number(b === BASIC));
}

/** List the values of one field, most frequent first. @param {Row[]} rows @param {"method" | "namespace" | "impact"} field */
export function valuesOf(rows, field) {
  const counts = new Map();
  for (const row of rows) if (row[field]) counts.set(row[field], (counts.get(row[field]) ?? 0) + 1);
  return [...counts].sort(([a, many], [b, few]) => few - many || a.localeCompare(b)).slice(0, MOST_VALUES);
}

/** Find the endpoint that a call with filled path parameters belongs to. @param {Row[]} rows */
export function findEndpoint(rows, method, path) {
  const exact = rows.find((row) => row.method === method && row.path === path);
  if (exact) return exact;
  const parts = path.split("?")[0].split("/");
  return rows.find((row) => {
    const own = row.path.split("/");
    return row.method === method && own.length === parts.length &&
      own.every((part, at) => part === parts[at] || (/^\{.+\}$/.test(part) && parts[at] !== ""));
  });
}

// What the browser keeps: arguments per endpoint and the caller for this tab, own exchanges beyond it.
import { EMPTY, NOBODY } from "./lib/call.js";
import { MOST, addEntry } from "./lib/history.js";

const DRAFT = "bespeak.console.draft ", CALLER = "bespeak.console.caller", HISTORY = "bespeak.console.history";
/** @type {Map<string, any>} */
const drafts = new Map(), answers = new Map();
/** @type {any} */
let caller = null;

/** @param {Storage} storage @param {string} name @param {any} otherwise */
function read(storage, name, otherwise) {
  try {
    return JSON.parse(storage.getItem(name) ?? "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** @param {Storage} storage @param {string} name @param {any} value */
function write(storage, name, value) {
  try {
    storage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false; // full, or forbidden by the browser: the page works without it
  }
}

/** @param {string} key @returns {import("./lib/call.js").Draft} */
export const readDraft = (key) => drafts.get(key) ?? read(sessionStorage, DRAFT + key, EMPTY);

/** Keep arguments. Secret ones are kept in memory only. @param {string} key @param {any} draft @param {string[]} secrets */
export function keepDraft(key, draft, secrets = []) {
  drafts.set(key, draft);
  const headers = draft.headers.filter((/** @type {string[]} */ [name]) => !/authorization/i.test(name));
  write(sessionStorage, DRAFT + key, { input: without(draft.input, secrets), headers });
}

/** @param {any} value @param {string[]} names @returns {any} */
function without(value, names) {
  if (!names.length || typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)).map(([name, one]) => [name, without(one, names)]));
}

/** @returns {import("./lib/call.js").Caller} */
export const readCaller = () => (caller ??= { ...NOBODY, ...read(sessionStorage, CALLER, {}) });

/** Keep who calls; a credential is kept in memory only. @param {any} found */
export function keepCaller(found) {
  caller = found;
  write(sessionStorage, CALLER, { ...found, bearer: "" });
}

/** @param {string} key */
export const readAnswer = (key) => answers.get(key) ?? null;
/** @param {string} key @param {any} found */
export const keepAnswer = (key, found) => void answers.set(key, found);

/** @returns {import("./lib/history.js").Entry[]} */
export const readHistory = () => read(localStorage, HISTORY, []);

/** Keep the history; if the browser has no room for it, fewer entries. @param {any[]} entries */
export function keepHistory(entries) {
  for (let kept = entries; ; kept = kept.slice(0, Math.floor(kept.length / 2))) {
    if (write(localStorage, HISTORY, kept) || kept.length < 2) return kept;
  }
}

/** @param {any} entry */
export const remember = (entry) => keepHistory(addEntry(readHistory(), entry, MOST));

/** What another view wants to be called next: `send` if it may be sent at once. @type {{key: string, send: boolean} | null} */
let wanted = null;
/** @param {string} key @param {boolean} send */
export const wantCall = (key, send) => void (wanted = { key, send });
/** @param {string} key */
export function takeWanted(key) {
  const found = wanted?.key === key && wanted.send;
  if (wanted?.key === key) wanted = null;
  return Boolean(found);
}
/** @param {string} method @param {string} path */
export const keyOf = (method, path) => `${method} ${path}`;

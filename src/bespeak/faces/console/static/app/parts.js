// Small parts that several views show.
import { html, useEffect, useRef, useState } from "./html.js";
import { IMPACTS } from "./lib/search.js";

const MARKS = { informational: "○", reversible: "◐", irreversible: "●" };

/** What an endpoint does to the world, as a mark with words. */
export function Impact({ of, short = false }) {
  const words = IMPACTS[of] ?? of;
  return html`<span class="impact ${of}" title=${words}><span aria-hidden="true">${MARKS[of] ?? "·"}</span>
    <span class=${short ? "unseen" : ""}> ${words}</span></span>`;
}

/** A verb and a path. */
export const CallName = ({ method, path }) => html`<code class="callname"><b>${method}</b> ${path}</code>`;

/** The outcome of a call, by sign and number. */
export function Status({ status, reason = "", refused = false }) {
  const kind = refused || status >= 400 ? (status >= 500 ? "failed" : "refused") : status === 202 ? "going" : "ok";
  const sign = { ok: "✓", refused: "✕", failed: "!", going: "…" }[kind];
  return html`<span class="status ${kind}"><span aria-hidden="true">${sign}</span> <b>${status}</b> ${reason}</span>`;
}

/** A message about something that did not work. */
export const Problem = ({ error, children }) =>
  html`<div class="problem" data-error=${error.code}><p>${error.message}</p>${children}</div>`;

/** A message where there is nothing to show. */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** A button that copies a text and says so. */
export function CopyButton({ text, label = "Copy", what = "", hotkey = false }) {
  const [said, say] = useState("");
  useEffect(() => {
    const timer = said && setTimeout(() => say(""), 1600);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      say("Copied");
    } catch {
      say("Select and copy it by hand");
    }
  };
  return html`<button type="button" class="small" onClick=${copy} data-hotkey=${hotkey ? "copy" : null}
    aria-label=${what ? `${said || label} ${what}` : null}><span aria-live="polite">${said || label}</span></button>`;
}

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MOST_COLOURED = 20_000;

/** JSON, indented and coloured. */
export function Json({ value }) {
  const text = JSON.stringify(value, null, 2) ?? "";
  return html`<pre>${text.length > MOST_COLOURED ? text : colour(text)}</pre>`;
}

function colour(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(TOKENS)) {
    parts.push(text.slice(at, found.index));
    const [all, string, colon, word] = found;
    const kind = string ? (colon ? "j-name" : "j-text") : word ? "j-word" : "j-number";
    parts.push(html`<span class=${kind}>${string ?? all}</span>`, colon ?? "");
    at = found.index + all.length;
  }
  return [...parts, text.slice(at)];
}

/** Facts as a list of names and values. */
export const Facts = ({ facts }) => html`<dl class="facts">${facts.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false)
  .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** A dialog of the browser: it keeps the focus and closes with Escape. */
export function Dialog({ title, onClose, children }) {
  const place = useRef(null);
  useEffect(() => {
    const dialog = place.current;
    if (!dialog.open) dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`<dialog ref=${place} aria-labelledby="dialog-title" onClose=${onClose}>
    <h2 id="dialog-title">${title}</h2>${children}</dialog>`;
}

/** Read a view of the server again whenever what is asked changes. */
export function useView(load, wanted) {
  const [found, set] = useState({ state: "loading" });
  const [round, again] = useState(0);
  useEffect(() => {
    let here = true;
    set((before) => ({ ...before, state: "loading" }));
    load().then((data) => here && set({ state: "ready", data }), (error) => here && set({ state: "error", error }));
    return () => void (here = false);
  }, [...wanted, round]);
  return [found, () => again((at) => at + 1), (data) => set({ state: "ready", data })];
}

export const time = (at) => new Date(at).toLocaleTimeString([], { hour12: false });
export const duration = (ms) => (ms === null || ms === undefined ? "" : ms < 0.1 ? `${Math.round(ms * 1000)} µs` : ms < 10 ? `${ms.toFixed(2)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);
export const many = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

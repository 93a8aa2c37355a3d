// The call that is being written: arguments as form and as JSON, who calls, headers, sending and copying.
import { html, useEffect, useRef, useState } from "./html.js";
import { CallerFields, HeaderFields } from "./caller.js";
import { Copies } from "./copies.js";
import { Members } from "./fields.js";
import { readJson } from "./lib/forgiving.js";
import { isObject } from "./lib/schema.js";

const OPEN = { type: "object" };

export function Composer({ found, session, draft, caller, call, state, onDraft, onCaller, onSend, onLink }) {
  const schema = found.input_schema ?? OPEN;
  const input = (next) => onDraft({ ...draft, input: isObject(next) ? next : {} });
  const irreversible = found.semantic?.impact === "irreversible";
  const hasFields = isObject(schema.properties) && Object.keys(schema.properties).length > 0 || schema.oneOf || schema.anyOf;
  const submit = (event) => {
    event.preventDefault();
    onSend();
  };
  return html`<form class="composer" onSubmit=${submit} aria-label="Call">
    <fieldset class="arguments"><legend>Arguments</legend>
      <div class="tools">
        ${found.sample && Object.keys(found.sample).length > 0 && html`<button type="button" class="small" onClick=${() => input(found.sample)}>Fill with an example</button>`}
        <button type="button" class="small" onClick=${() => onDraft({ ...draft, input: {} })}>Clear</button>
        <button type="button" class="small" onClick=${onLink}>Copy link</button></div>
      ${hasFields ? html`<${Members} schema=${schema} root=${schema} value=${draft.input} onChange=${input} />`
        : html`<p class="soft">${found.input_schema ? "The contract names no arguments." : "There is no schema for a form; write the JSON."}</p>`}
      <${JsonText} value=${draft.input} onChange=${input} open=${!hasFields} />
    </fieldset>
    <${CallerFields} caller=${caller} onCaller=${onCaller} required=${found.required_scopes ?? []} identity=${session.identity} />
    <${HeaderFields} headers=${draft.headers} onChange=${(headers) => onDraft({ ...draft, headers })} />
    ${session.can && !session.can.includes("act") ? html`<p class="note">You may look, but not call: the credential does not have the scope <code>console:act</code>.</p>`
      : html`<${SendBar} state=${state} irreversible=${irreversible} />`}
    <${Copies} call=${call} session=${session} found=${found} />
  </form>`;
}

/** The same arguments as JSON. What is typed here fills the form, and the other way round. */
function JsonText({ value, onChange, open }) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const [told, tell] = useState({ kind: "", text: "" });
  const read = useRef(JSON.stringify(value));
  useEffect(() => {
    if (JSON.stringify(value) === read.current) return;
    read.current = JSON.stringify(value);
    setText(JSON.stringify(value, null, 2));
    tell({ kind: "", text: "" });
  }, [value]);
  const type = (event) => {
    const typed = event.currentTarget.value;
    setText(typed);
    const found = typed.trim() ? readJson(typed) : { value: {}, corrected: false };
    if ("error" in found) return tell({ kind: "error", text: `This is not JSON yet: ${found.error}. The form shows the last that was.` });
    if (!isObject(found.value)) return tell({ kind: "error", text: "The arguments must be an object: { … }." });
    read.current = JSON.stringify(found.value);
    onChange(found.value);
    tell(found.corrected ? { kind: "corrected", text: "Read although it is not strict JSON." } : { kind: "", text: "" });
  };
  const tidy = () => {
    setText(JSON.stringify(value, null, 2));
    tell({ kind: "", text: "" });
  };
  return html`<details class="json" open=${open} data-json=${told.kind || "valid"}><summary>JSON</summary>
    <label class="unseen" for="json">Arguments as JSON</label>
    <textarea id="json" class="mono" spellcheck=${false} autocomplete="off" rows=${Math.min(18, Math.max(4, text.split("\n").length))}
      aria-describedby="json-told" aria-invalid=${told.kind === "error" ? "true" : null} value=${text} onInput=${type} />
    <p id="json-told" class=${told.kind === "error" ? "wrong" : "soft"} role="status">${told.text}
      ${told.kind === "corrected" && html` <button type="button" class="small" onClick=${tidy}>Tidy</button>`}</p>
  </details>`;
}

/** The button that sends. What cannot be undone says so, and is sent by the second press. */
function SendBar({ state, irreversible }) {
  const words = state === "sending" ? "Sending…" : state === "armed" ? "Press again to send" : irreversible ? "Send (cannot be undone)" : "Send";
  return html`<div class="send" data-armed=${state === "armed"}>
    <button type="submit" class=${`primary ${irreversible ? "danger" : ""}`} aria-disabled=${state === "sending" ? "true" : null}>${words}</button>
    <span class="soft"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span>
    <span class="armed-note" role="status">${state === "armed" ? "This call cannot be undone. Press again to send it, or change something to stop." : ""}</span>
  </div>`;
}

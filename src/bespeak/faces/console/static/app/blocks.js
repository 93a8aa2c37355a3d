// Blocks: what a panel of the server consists of. Tables with actions, facts, texts and drawings.
import { html, useState } from "./html.js";
import { Drawing } from "./drawing.js";
import { fillKey } from "./lib/copy.js";
import { isObject } from "./lib/schema.js";
import { Dialog, Json } from "./parts.js";

/** `links` writes the addresses of a row that is shown alone, and of a further page.
 * @param {{blocks: any[], onAct: (name: string, key: string, fields: Record<string, string>) => Promise<any>, links?: any}} given */
export function Blocks({ blocks, onAct, links = null }) {
  return html`<div class="blocks">${blocks.map((block, at) => html`<section key=${at} class="block" aria-labelledby=${isFirst(blocks, at) ? `block-${at}` : null} data-block=${block.kind}>
    <h2 id=${`block-${at}`}>${block.title}</h2><${KINDS[block.kind] ?? Other} block=${block} onAct=${onAct} links=${links} />
    ${block.command && html`<${Shell} command=${block.command} />`}</section>`)}</div>`;
}

// A plan is told and drawn under one title; landmarks must differ in theirs.
const isFirst = (blocks, at) => blocks.findIndex((one) => one.title === blocks[at].title) === at;

const SHOW = "show"; // the one action that changes nothing: a link
let lastName = ""; // of the operator, who decides more than once

function Table({ block, onAct, links }) {
  const [asked, ask] = useState(null);
  const [told, tell] = useState(null);
  const actions = block.actions ?? {};
  const act = async (name, key, fields) => {
    ask(null);
    tell({ text: "Working…" });
    await onAct(name, key, fields).then(() => tell({ text: `${actions[name]?.label ?? name}: done.` }), (error) => tell({ text: error.message, wrong: true }));
  };
  const press = (name, row) => {
    const action = actions[name] ?? {};
    if (action.danger || action.fields?.length) ask({ name, row, action });
    else act(name, row.key, {});
  };
  const acts = block.rows.some((row) => row.actions?.length);
  return html`<p role="status" class=${told?.wrong ? "wrong" : "soft"}>${told?.text ?? ""}</p>
    ${block.rows.length ? html`<div class="scroll" tabindex="0" role="region" aria-label=${`${block.title}, table`}><table class="stack" data-rows>
      <thead><tr>${block.columns.map((one) => html`<th key=${one}>${one}</th>`)}${acts && html`<th><span class="unseen">Actions</span></th>`}</tr></thead>
      <tbody>${block.rows.map((row) => html`<tr key=${row.key} data-key=${row.key} data-state=${row.state}>
        ${row.cells.map((cell, at) => html`<td key=${at} data-column=${block.columns[at]}><${Cell} cell=${cell} state=${at === 0 ? row.state : ""} /></td>`)}
        ${acts && html`<td class="tools">${(row.actions ?? []).map((name) => name === SHOW && links ? html`<a class="button small" key=${name} data-action=${name} href=${links({ key: row.key })}>${actions[name]?.label ?? "Show"}<span class="unseen"> ${row.key}</span></a>` : html`<button type="button" key=${name} data-action=${name}
          class=${`small ${actions[name]?.danger ? "danger" : ""}`} onClick=${() => press(name, row)}>${actions[name]?.label ?? name}<span class="unseen"> ${row.key}</span></button>`)}</td>`}
      </tr>`)}</tbody></table></div>` : html`<p class="empty">${block.empty || "Nothing here."}</p>`}
    ${block.next && links && html`<a class="button small" href=${links({ after: block.next })}>Next page</a>`}
    ${asked && html`<${Ask} asked=${asked} onClose=${() => ask(null)} onAct=${act} />`}`;
}

/** Asks for what an action needs, and for a yes if it cannot be taken back. */
function Ask({ asked: { name, row, action }, onClose, onAct }) {
  const fields = (action.fields ?? []).map((one) => (typeof one === "string" ? { name: one } : one));
  const [values, setValues] = useState(fields.some((one) => one.name === "by") ? { by: lastName } : {});
  const submit = (event) => {
    event.preventDefault();
    lastName = values.by ?? lastName;
    onAct(name, row.key, values);
  };
  return html`<${Dialog} title=${action.label ?? name} onClose=${onClose}><form onSubmit=${submit}>
    <p><code>${row.key}</code></p>
    ${action.danger && html`<p class="note">This decides it for good.</p>`}
    ${fields.map((one) => html`<div class="field" key=${one.name}><label for=${`ask-${one.name}`}>${one.label ?? one.name.replaceAll("_", " ")}</label>
      <input id=${`ask-${one.name}`} autocomplete="off" required=${one.required === true} value=${values[one.name] ?? ""}
        onInput=${(event) => setValues({ ...values, [one.name]: event.currentTarget.value })} /></div>`)}
    <div class="tools"><button type="submit" class=${`primary ${action.danger ? "danger" : ""}`}>${action.label ?? name}</button>
      <button type="button" onClick=${onClose}>Cancel</button></div>
    ${action.command && html`<${Shell} command=${fillKey(action.command, row.key)} />`}</form><//>`;
}

/** The command that does the same. */
export const Shell = ({ command }) => html`<p class="shell soft">In a shell: <code>${command}</code></p>`;

function Cell({ cell, state = "" }) {
  if (cell === null || cell === undefined || cell === "") return html`<span class="soft">–</span>`;
  const mark = state && html` <span class="tag">${state}</span>`;
  if (isObject(cell) && typeof cell.text === "string") return cell.code ? html`<code>${cell.text}</code>` : cell.text;
  if (typeof cell === "object") return html`<code>${JSON.stringify(cell)}</code>`;
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  return html`${typeof cell === "number" ? cell.toLocaleString("en") : cell}${mark}`;
}

const FactsBlock = ({ block }) => html`<dl class="facts">${Object.entries(block.facts).map(([name, value]) =>
  html`<div key=${name}><dt>${name.replaceAll("_", " ")}</dt><dd><${Cell} cell=${value} /></dd></div>`)}</dl>`;
const TextBlock = ({ block }) => html`<pre class="plain">${block.text}</pre>`;
const Other = ({ block }) => html`<${Json} value=${block} />`;
const KINDS = { table: Table, facts: FactsBlock, text: TextBlock, graph: ({ block }) => html`<${Drawing} block=${block} />` };

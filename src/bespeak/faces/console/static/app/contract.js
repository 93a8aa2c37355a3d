// The contract as it is published: every face with its size, findings of the linter, the catalog, and a comparison.
import { html, useState } from "./html.js";
import { get, post } from "./api.js";
import { Blocks, Shell } from "./blocks.js";
import { Findings } from "./findings.js";
import { viewLink } from "./lib/routes.js";
import { CopyButton, Json, Problem, useView } from "./parts.js";

const PARTS = [["faces", "Faces"], ["lint", "Lint"], ["catalog", "Catalog"], ["diff", "Compare"]];

export function ContractView({ route }) {
  const part = route.id ?? "faces";
  return html`<section class="page contract" aria-label="Contract"><div class="head"><h1>Contract</h1></div>
    <nav class="tabs" aria-label="Parts">${PARTS.map(([name, title]) => html`<a key=${name} href=${viewLink("contract", name)}
      aria-current=${name === part ? "page" : null}>${title}</a>`)}</nav>
    ${part === "faces" ? html`<${Faces} query=${route.query} />` : part === "diff" ? html`<${Diff} />` : html`<${Part} key=${part} name=${part} />`}</section>`;
}

/** The documents that are made of one contract, two of them beside each other. */
function Faces({ query }) {
  const [view] = useView(() => get("contract"), []);
  const names = (query.show ?? "").split(",").filter(Boolean);
  const shown = names.length ? names : (view.data?.faces ?? []).slice(0, 1).map((one) => one.name);
  const toggle = (name) => viewLink("contract", "faces", { show: (shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name].slice(-2)).join(",") });
  return html`<div data-state=${view.state}><${State} view=${view} />
    ${view.data?.faces && html`<div class="scroll" tabindex="0" role="region" aria-label="Faces"><table data-rows><thead><tr><th>Face</th><th>Where</th><th>Type</th><th class="number">Bytes</th><th class="number">Tokens</th></tr></thead>
      <tbody>${view.data.faces.map((one) => html`<tr key=${one.name}><td><a href=${toggle(one.name)} aria-current=${shown.includes(one.name) ? "true" : null}>${one.title ?? one.name}</a></td>
        <td><code>${one.path}</code></td><td class="soft">${one.media_type}</td><td class="number">${one.bytes?.toLocaleString("en")}</td><td class="number">${one.tokens?.toLocaleString("en") ?? ""}</td></tr>`)}</tbody></table></div>
      <p class="soft note-below">Choose up to two to see them side by side. ${view.data.tokens_are && `Tokens are ${view.data.tokens_are}.`}</p>
      <div class="side">${shown.map((name) => html`<${Face} key=${name} name=${name} />`)}</div>`}</div>`;
}

function Face({ name }) {
  const [view] = useView(() => get("face", { name }), [name]);
  const text = view.data === undefined ? "" : typeof view.data === "string" ? tidy(view.data) : JSON.stringify(view.data, null, 2);
  return html`<section aria-labelledby=${`face-${name}`} data-face=${name}><h2 id=${`face-${name}`}>${name} <${CopyButton} text=${text} what=${name} /></h2>
    <${State} view=${view} />${view.data !== undefined && html`<pre>${text}</pre>`}</section>`;
}

/** A part of which the server says as findings, blocks or data. */
function Part({ name }) {
  const [view, reload] = useView(() => get(name), [name]);
  return html`<div data-state=${view.state}><div class="tools"><button type="button" class="small" onClick=${reload}>Load again</button></div>
    <${State} view=${view} />${view.data && html`<${Told} told=${view.data} />`}</div>`;
}

function Told({ told }) {
  const findings = Array.isArray(told) ? told : (told.changes ?? told.findings) && [...(told.changes ?? []), ...(told.findings ?? [])];
  if (Array.isArray(told.blocks)) return html`<${Blocks} blocks=${told.blocks} onAct=${() => Promise.reject(new Error("Nothing to do here."))} />`;
  return Array.isArray(findings) ? html`<${Findings} findings=${findings} summary=${told.summary} bump=${told.version?.needed_bump} />
    ${told.command && html`<${Shell} command=${told.command} />`}` : html`<${Json} value=${told} />`;
}

/** What would change for callers between another version of the contract and this one. */
function Diff() {
  const [text, setText] = useState("");
  const [found, set] = useState(null);
  const compare = async (event) => {
    event.preventDefault();
    set({ state: "loading" });
    await post("diff", { other: text }).then((data) => set({ state: "ready", data }), (error) => set({ state: "error", error }));
  };
  const load = async (event) => setText(await event.currentTarget.files[0]?.text() ?? "");
  return html`<form onSubmit=${compare} data-state=${found?.state ?? "idle"}>
    <p class="soft">Compare the served contract with another version of it: a manifest, an AGIS or an endpoint document.</p>
    <div class="field"><label for="other-file">File</label><input id="other-file" type="file" onChange=${load} /></div>
    <div class="field"><label for="other">Other version</label><textarea id="other" class="mono" rows="10" spellcheck=${false} value=${text} onInput=${(event) => setText(event.currentTarget.value)} /></div>
    <button type="submit" class="primary">Compare</button>
    <div role="status">${found && html`<${State} view=${found} />`}${found?.data && html`<${Told} told=${found.data} />`}</div></form>`;
}

const State = ({ view }) => (view.state === "error" ? html`<${Problem} error=${view.error} />` : view.state === "loading" && view.data === undefined ? html`<p class="soft">Loading…</p>` : null);

/** Indent a document if it is JSON. @param {string} text */
function tidy(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

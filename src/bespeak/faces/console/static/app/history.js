// Own exchanges: pin, call again, compare two, export. They stay in this browser.
import { html, useState } from "./html.js";
import { keepCaller, keepDraft, keepHistory, keyOf, readCaller, readHistory, wantCall } from "./keep.js";
import { readCall } from "./lib/call.js";
import { MOST, compareEntries, exportEntries, togglePin } from "./lib/history.js";
import { endpointLink, viewLink } from "./lib/routes.js";
import { Details, Summary } from "./exchange.js";
import { CallName, Dialog, Status, duration, time } from "./parts.js";

export function History({ session, rows, route }) {
  const [entries, setEntries] = useState(readHistory);
  const [sure, setSure] = useState(false);
  const pair = (route.query.compare ?? "").split(",").filter(Boolean);
  const change = (next) => setEntries(keepHistory(next));
  const choose = (id) => viewLink("history", "", { compare: (pair.includes(id) ? pair.filter((one) => one !== id) : [...pair, id].slice(-2)).join(",") });
  const [left, right] = pair.map((id) => entries.find((one) => one.id === id));
  return html`<section class="page history" aria-label="History" data-entries=${entries.length}>
    <div class="head"><h1>History</h1><p class="soft">The last ${MOST} of your exchanges, kept by this browser without credentials.</p>
      <div class="tools"><button type="button" disabled=${!entries.length} onClick=${() => save(entries, session.service.server_id)}>Export JSON</button>
        <button type="button" disabled=${!entries.length} onClick=${() => setSure(true)}>Delete</button></div></div>
    ${left && right && html`<${Compared} left=${left} right=${right} />`}
    ${left && !right && html`<p class="note" role="status">Choose a second exchange to compare with.</p>`}
    ${entries.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Exchanges"><table class="stack" data-rows>
      <thead><tr><th>When</th><th>Call</th><th>Outcome</th><th class="number">Took</th><th>Caller</th><th><span class="unseen">Actions</span></th></tr></thead>
      <tbody>${entries.map((one) => html`<tr key=${one.id} data-exchange-id=${one.id} data-status-code=${one.answer.status} data-pinned=${one.pinned}>
        <td class="soft">${day(one.at)} ${time(one.at)}</td>
        <td><a href=${viewLink("exchange", one.id)}><${CallName} method=${one.call.method} path=${one.call.path} /></a></td>
        <td><${Status} status=${one.answer.status} reason=${one.answer.error?.code ?? one.answer.reason} refused=${one.answer.refused} /></td>
        <td class="number">${duration(one.answer.ms)}</td><td>${one.call.as ?? (one.call.agent_id ? `${one.call.agent_id.slice(0, 8)}…` : html`<span class="soft">nobody</span>`)}</td>
        <td class="tools"><button type="button" class="small" aria-pressed=${String(one.pinned)} onClick=${() => change(togglePin(entries, one.id))}>${one.pinned ? "Pinned" : "Pin"}</button>
          <button type="button" class="small" onClick=${() => callAgain(one, rows)}>Call again</button>
          <a class="button small" href=${choose(one.id)} aria-current=${pair.includes(one.id) ? "true" : null}>Compare</a></td></tr>`)}</tbody></table></div>`
      : html`<p class="empty">Nothing yet. What you send in <a href="#/">Try</a> is listed here.</p>`}
    ${sure && html`<${Dialog} title="Delete the history?" onClose=${() => setSure(false)}><p>Pinned exchanges stay.</p>
      <div class="tools"><button type="button" class="primary danger" onClick=${() => { change(entries.filter((one) => one.pinned)); setSure(false); }}>Delete</button>
        <button type="button" onClick=${() => setSure(false)}>Cancel</button></div><//>`}
  </section>`;
}

/** Fill the form with a call; what only reads is sent at once. */
function callAgain(entry, rows) {
  const { method, path } = entry.call, read = readCall(entry.call, readCaller()), key = keyOf(method, path);
  keepDraft(key, read.draft);
  keepCaller(read.caller);
  wantCall(key, rows.find((one) => one.method === method && one.path === path)?.impact === "informational");
  location.hash = endpointLink(method, path);
}

function Compared({ left, right }) {
  const differences = compareEntries(left, right);
  const head = (one) => html`<th><a href=${viewLink("exchange", one.id)}>${one.call.method} ${one.call.path}</a> <span class="soft">${time(one.at)}</span></th>`;
  return html`<section class="compared" aria-labelledby="compared" data-differences=${differences.length}><h2 id="compared">Comparison</h2>
    ${differences.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Differences"><table><thead><tr><th>Differs in</th>${head(left)}${head(right)}</tr></thead><tbody>
      ${differences.map((one) => html`<tr key=${one.name}><th scope="row"><code>${one.name}</code></th><td><code>${one.left ?? "–"}</code></td><td><code>${one.right ?? "–"}</code></td></tr>`)}</tbody></table></div>`
      : html`<p class="empty">Both are the same.</p>`}
    <p><a href="#/history">End the comparison</a></p></section>`;
}

/** One exchange of the history, at an address of its own. */
export function OneExchange({ route, rows }) {
  const entry = readHistory().find((one) => one.id === route.id);
  if (!entry) return html`<section class="page"><h1>Exchange</h1><p class="note">This browser does not keep the exchange ${route.id}: it is older than the last ${MOST}, or was made in another browser.</p></section>`;
  const refusing = entry.answer.gates.find((one) => one.verdict === "refused");
  return html`<section class="page narrow exchange" id="exchange" aria-label="Exchange" data-state=${entry.answer.refused ? "refused" : "done"}
      data-status-code=${entry.answer.status} data-code=${entry.answer.error?.code} data-gate=${refusing?.gate} data-exchange-id=${entry.id}>
    <div class="head"><h1><${CallName} method=${entry.call.method} path=${entry.call.path} /></h1><p class="soft">${day(entry.at)} ${time(entry.at)}</p>
      <div class="tools"><button type="button" onClick=${() => callAgain(entry, rows)}>Call again</button></div></div>
    <h2 class="unseen">Answer and trail</h2><${Summary} answer=${entry.answer} /><${Details} answer=${entry.answer} call=${entry.call} /></section>`;
}

const day = (at) => new Date(at).toLocaleDateString("en", { day: "numeric", month: "short" });

function save(entries, service) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([exportEntries(entries, service)], { type: "application/json" }));
  link.download = "console-history.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

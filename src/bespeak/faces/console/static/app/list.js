// The list of endpoints: search, filters, and as many rows as can be read.
import { html, useEffect, useMemo, useState } from "./html.js";
import { endpointLink } from "./lib/routes.js";
import { IMPACTS, groupRows, searchRows, valuesOf } from "./lib/search.js";
import { Impact, many } from "./parts.js";

const PAGE = 120; // rows at a time: thousands stay responsive

export function EndpointList({ rows, chosen }) {
  const [words, setWords] = useState("");
  const [wanted, setWanted] = useState({ impact: "", namespace: "", method: "" });
  const [most, setMost] = useState(PAGE);
  const found = useMemo(() => searchRows(rows, words, wanted), [rows, words, wanted]);
  const groups = useMemo(() => groupRows(found.slice(0, most)), [found, most]);
  useEffect(() => setMost(PAGE), [words, wanted]);
  const filter = (name) => (event) => setWanted({ ...wanted, [name]: event.currentTarget.value });
  const filtered = words || Object.values(wanted).some(Boolean);
  return html`<nav class="list" aria-label="Endpoints" data-found=${found.length}>
    <div class="filters" role="search">
      <label class="unseen" for="search">Search endpoints</label>
      <input id="search" type="search" placeholder="Search endpoints  /" autocomplete="off" spellcheck=${false}
        value=${words} onInput=${(event) => setWords(event.currentTarget.value)} onKeyDown=${openFirst} />
      <div class="three">
        <${Choice} label="Verb" value=${wanted.method} all="Verb" onChange=${filter("method")} options=${valuesOf(rows, "method")} />
        <${Choice} label="Impact" value=${wanted.impact} all="Impact" onChange=${filter("impact")}
          options=${valuesOf(rows, "impact").map(([name, count]) => [name, count, IMPACTS[name] ?? name])} />
        <${Choice} label="Namespace" value=${wanted.namespace} all="Namespace" onChange=${filter("namespace")} options=${valuesOf(rows, "namespace")} />
      </div>
      <p class="soft count" role="status">${many(found.length, "endpoint")}${filtered ? ` of ${rows.length.toLocaleString("en")}` : ""}</p>
    </div>
    <div class="rows" data-rows>
      ${groups.map(([name, own]) => html`<section key=${name} aria-label=${name}><h2>${name}</h2><ul>
        ${own.map((row) => html`<${Row} key=${`${row.method} ${row.path}`} row=${row}
          current=${chosen?.method === row.method && chosen?.path === row.path} />`)}</ul></section>`)}
      ${found.length > most && html`<button type="button" class="wide" onClick=${() => setMost(most + 4 * PAGE)}>
        Show more: ${(found.length - most).toLocaleString("en")} left</button>`}
      ${!found.length && html`<p class="empty">No endpoint fits. A path can be called all the same: open
        <a href=${freeLink(words)}><code>${words.trim() || "QUERY /path"}</code></a>.</p>`}
    </div>
  </nav>`;
}

function Row({ row, current }) {
  return html`<li><a href=${endpointLink(row.method, row.path)} aria-current=${current ? "page" : null}
      data-method=${row.method} data-path=${row.path}>
    <span class="line"><${Impact} of=${row.impact} short /><code><b>${row.method}</b> ${row.path}</code>
      ${row.deprecated && html`<span class="tag warn">deprecated</span>`}${row.internal && html`<span class="tag">internal</span>`}</span>
    <span class="intent soft">${row.intent}</span></a></li>`;
}

function Choice({ label, value, all, options, onChange }) {
  return html`<select aria-label=${label} value=${value} onChange=${onChange}>
    <option value="">${all}</option>
    ${options.map(([name, count, words = name]) => html`<option key=${name} value=${name}>${words} (${count})</option>`)}</select>`;
}

function openFirst(event) {
  if (event.key !== "Enter" && event.key !== "ArrowDown") return;
  /** @type {HTMLElement | null} */
  const first = document.querySelector("[data-rows] a");
  if (!first) return;
  event.preventDefault();
  if (event.key === "Enter") first.click();
  first.focus();
}

/** @param {string} words */
function freeLink(words) {
  const [, method = "QUERY", path = "/"] = /^\s*([A-Za-z]+)\s+(\/\S*)/.exec(words) ?? [];
  return endpointLink(method.toUpperCase(), path);
}

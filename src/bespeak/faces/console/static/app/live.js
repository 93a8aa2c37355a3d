// Exchanges as they happen: a stream of reports, drawn as charts and a table.
import { html, useEffect, useRef, useState } from "./html.js";
import { watch } from "./api.js";
import { Charts } from "./charts.js";
import { endpointLink } from "./lib/routes.js";
import { findEndpoint } from "./lib/search.js";
import { addReport } from "./lib/series.js";
import { Problem, Status, duration, many, time } from "./parts.js";

const MOST = 100; // rows of the table
const RETRY = 2000; // milliseconds until a lost stream is opened again
const GATES = ["rate", "identity", "discovery", "vocabulary", "path", "route", "scope", "budget", "input", "session", "task", "idempotency", "confirmation"];
const STATUSES = [["", "Any status"], ["2", "2xx: carried out"], ["4", "4xx: refused"], ["5", "5xx: failed"], ["262", "262"], ["405", "405"], ["422", "422"], ["429", "429"], ["455", "455"], ["459", "459"]];
const NOTHING = { rows: [], buckets: [], seen: 0, shown: 0 };

export function Live({ rows: endpoints, session }) {
  const [filters, setFilters] = useState({ agent: "", method: "", path: "", status: "", gate: "" });
  const [state, setState] = useState("connecting");
  const [error, setError] = useState(null);
  const [paused, setPaused] = useState(false);
  const [shown, show] = useState(NOTHING);
  const [now, tick] = useState(Date.now());
  const kept = useRef(NOTHING), still = useRef(false), number = useRef(0);
  still.current = paused;

  useEffect(() => {
    const timer = setInterval(() => still.current || tick(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    const ending = new AbortController();
    let timer = 0;
    kept.current = NOTHING;
    show(NOTHING);
    const see = (report) => {
      const before = kept.current, at = Date.now();
      const fresh = report.shown.map((one) => ({ ...one, id: (number.current += 1) })).reverse();
      kept.current = { rows: [...fresh, ...before.rows].slice(0, MOST), buckets: addReport(before.buckets, report, at),
        seen: before.seen + report.seen, shown: before.shown + report.shown.length };
      if (!still.current) (show(kept.current), tick(at));
    };
    const open = () => {
      setState("connecting");
      watch(filters, see, ending.signal, () => (setState("watching"), setError(null))).then(() => lost(null), (problem) => problem.name !== "AbortError" && lost(problem));
    };
    const lost = (problem) => {
      if (ending.signal.aborted) return;
      setState("lost");
      setError(problem);
      timer = setTimeout(open, RETRY);
    };
    open();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [filters]);

  const set = (name) => (event) => setFilters({ ...filters, [name]: event.currentTarget.value.trim() });
  const sampled = shown.seen > shown.shown;
  const missed = paused ? kept.current.seen - shown.seen : 0;
  return html`<section class="page live" aria-label="Live" data-state=${paused ? "paused" : state} data-seen=${shown.seen} data-sampled=${sampled}>
    <div class="head"><h1>Live</h1><p class="soft" role="status">${words(state, paused)}</p>
      <button type="button" aria-pressed=${String(paused)} onClick=${() => { if (paused) show(kept.current); setPaused(!paused); }}>${paused ? "Go on" : "Pause"}</button></div>
    ${error && html`<${Problem} error=${error} />`}
    ${session.workers > 1 && html`<p class="note">The service has ${session.workers} workers. This page sees the exchanges of the one that it is connected to.</p>`}
    <form class="filters row" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
      <label>Verb <input class="mono" value=${filters.method} onChange=${set("method")} size="10" placeholder="any" /></label>
      <label>Path holds <input class="mono" value=${filters.path} onChange=${set("path")} size="14" placeholder="any" /></label>
      <label>Agent-ID begins <input class="mono" value=${filters.agent} onChange=${set("agent")} size="12" placeholder="any" /></label>
      <label>Status <select value=${filters.status} onChange=${set("status")}>${STATUSES.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></label>
      <label>Gate <select value=${filters.gate} onChange=${set("gate")}><option value="">Any gate</option>${GATES.map((one) => html`<option key=${one}>${one}</option>`)}</select></label>
    </form>
    <${Charts} buckets=${shown.buckets} now=${now} />
    <p class="soft">${many(shown.seen, "exchange")} counted${sampled ? `, ${shown.shown.toLocaleString("en")} of them shown: the table is a sample, counts and charts are complete` : ", all shown"}.${missed > 0 ? ` ${missed.toLocaleString("en")} more while paused.` : ""}</p>
    ${shown.rows.length > 0 ? html`<div class="scroll" tabindex="0" role="region" aria-label="Exchanges"><table class="stack" data-rows>
      <thead><tr><th>Time</th><th>Call</th><th>Outcome</th><th>Gate</th><th class="number">Took</th><th>Agent</th><th>Face</th></tr></thead>
      <tbody>${shown.rows.map((one) => html`<${Exchange} key=${one.id} one=${one} endpoints=${endpoints} />`)}</tbody></table></div>`
      : html`<p class="empty">Nothing yet. Call an endpoint in another tab, or from a shell, and it appears here.</p>`}
  </section>`;
}

function Exchange({ one, endpoints }) {
  const endpoint = findEndpoint(endpoints, one.method, one.path);
  const agent = one.agent_id ?? one["agent-id"] ?? "";
  return html`<tr data-status-code=${one.status} data-gate=${one.gate}>
    <td class="soft">${time(one.at * 1000)}</td>
    <td><a href=${endpointLink(one.method, endpoint?.path ?? one.path)}><code><b>${one.method}</b> ${one.path}</code></a></td>
    <td><${Status} status=${one.status} reason=${one.code ?? ""} refused=${Boolean(one.code)} />${one.replayed && html` <span class="tag">replayed</span>`}</td>
    <td>${one.gate ?? html`<span class="soft">${one.code ? "–" : "passed all"}</span>`}</td><td class="number">${duration(one.ms)}</td>
    <td><code title=${agent}>${agent ? `${agent.slice(0, 8)}…` : html`<span class="soft">none</span>`}</code></td><td class="soft">${one.face}</td></tr>`;
}

const words = (state, paused) => (paused ? "Paused; exchanges are still counted." : { connecting: "Connecting…", watching: "Watching.", lost: "The stream ended; it is opened again." }[state]);

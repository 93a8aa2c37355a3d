// The view in which endpoints are tried: the list, the endpoint with the call, and the exchange.
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { ApiError, get, post } from "./api.js";
import { Composer } from "./composer.js";
import { Contract, Meaning, Unknown } from "./endpoint.js";
import { Outcome } from "./exchange.js";
import { keepAnswer, keepCaller, keepDraft, keyOf, readAnswer, readCaller, readDraft, remember, takeWanted } from "./keep.js";
import { EMPTY, applyRemedy, readCall, splitScopes, writeCall } from "./lib/call.js";
import { readJson } from "./lib/forgiving.js";
import { makeEntry } from "./lib/history.js";
import { endpointLink, readRoute } from "./lib/routes.js";
import { isObject, secretNames } from "./lib/schema.js";
import { EndpointList } from "./list.js";
import { Problem, useView } from "./parts.js";

export function Try({ session, rows, route }) {
  const chosen = route.view === "endpoint" ? route : null;
  return html`<div class="try" data-chosen=${chosen ? "endpoint" : "none"}>
    <${EndpointList} rows=${rows} chosen=${chosen} />
    ${chosen ? html`<${Endpoint} key=${keyOf(chosen.method, chosen.path)} session=${session} rows=${rows} route=${chosen} />`
      : html`<section class="welcome"><h1>${session.service.name}</h1><p class="lead">${session.service.description}</p>
        <p class="soft">Choose an endpoint to see what it means, call it, and watch every gate that judges the call.
          Press <kbd>/</kbd> to search and <kbd>?</kbd> for all keys.</p></section>`}
  </div>`;
}

function Endpoint({ session, rows, route }) {
  const { method, path } = route, key = keyOf(method, path);
  const known = rows.some((row) => row.method === method && row.path === path);
  const [view] = useView(() => (known ? get("endpoint", { method, path }) : Promise.reject(new ApiError(404, "endpoint-not-found", ""))), [key]);
  const [draft, setDraft] = useState(() => fromLink(route) ?? readDraft(key));
  const [caller, setCaller] = useState(() => ({ ...readCaller(), ...callerOfLink(route) }));
  const [sent, setSent] = useState(() => readAnswer(key) ?? { state: "idle" });
  const unknown = view.state === "error" && view.error.code === "endpoint-not-found";
  const found = view.data ?? (unknown ? { method, path } : null);
  const secrets = useMemo(() => (found?.input_schema ? secretNames(found.input_schema, found.input_schema) : []), [found]);
  const call = useMemo(() => writeCall(method, path, draft, caller), [draft, caller]);

  useEffect(() => {
    // A link fills the form once; what is typed afterwards must not be lost at the next load.
    // Another address may have been opened before this view was drawn.
    const open = readRoute(location.hash);
    if (open.method === method && open.path === path && Object.keys(route.query).length) history.replaceState(null, "", endpointLink(method, path));
    document.title = `${method} ${path} · ${session.service.name}`;
  }, []);
  useEffect(() => keepDraft(key, draft, secrets), [draft, secrets]);
  useEffect(() => keepCaller(caller), [caller]);
  useEffect(() => { if (view.state === "ready" && takeWanted(key)) send(); }, [view.state]);
  const disarm = () => sent.state === "armed" && setSent({ ...sent, state: sent.before });
  const finish = (next) => {
    keepAnswer(key, next);
    setSent(next);
  };

  async function send() {
    if (sent.state === "sending") return;
    const armed = sent.state === "armed";
    if (!armed && found?.semantic?.impact === "irreversible") return setSent({ ...sent, state: "armed", before: sent.state });
    setSent({ state: "sending" });
    try {
      const answer = { ...await post("exchange", { ...call, ...(armed ? { confirmed: true } : {}) }), at: Date.now() };
      remember(makeEntry(call, answer, secrets, answer.at));
      finish({ state: answer.refused ? "refused" : "done", answer, call });
    } catch (error) {
      if (error.code === "press-again") return setSent({ ...sent, state: "armed", before: "idle" });
      finish({ state: "failed", error });
    }
    const region = document.getElementById("exchange");
    if (region && region.getBoundingClientRect().top > innerHeight - 160) region.scrollIntoView({ block: "start" });
  }
  const sendNow = useRef(send);
  sendNow.current = send;
  useEffect(() => {
    const press = (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) (event.preventDefault(), sendNow.current());
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);

  function remedy({ kind, change }) {
    const proposal = { method, path, intent: `What ${method} ${path} shall do`, outcome: "" };
    const next = kind === "propose" ? { ...call, method: "PROPOSE", path: "/", input: proposal, headers: {} } : applyRemedy(call, change);
    const read = readCall(next, caller);
    setCaller(read.caller);
    keepCaller(read.caller);
    if (next.method === method && next.path === path) {
      setDraft(read.draft);
      setSent({ ...sent, state: sent.state });
      /** @type {HTMLElement | null} */ (document.querySelector(".send button"))?.focus();
    } else {
      keepDraft(keyOf(next.method, next.path), read.draft);
      location.hash = endpointLink(next.method, next.path);
    }
  }

  const link = () => navigator.clipboard?.writeText(location.href.split("#")[0] + endpointLink(method, path, {
    body: Object.keys(draft.input).length ? JSON.stringify(draft.input) : "", scopes: splitScopes(caller.scopes).join(" ") }));
  return html`<section class="endpoint" aria-label="Endpoint" data-state=${found ? (unknown ? "unknown" : "ready") : view.state}
      data-method=${method} data-path=${path} data-impact=${found?.semantic?.impact}>
      <a class="back" href="#/">All endpoints</a>
      ${unknown ? html`<${Unknown} method=${method} path=${path} />` : view.data ? html`<${Meaning} found=${view.data} />`
        : view.state === "error" ? html`<h1>${method} ${path}</h1><${Problem} error=${view.error} />` : html`<h1>${method} ${path}</h1><p class="soft">Loading…</p>`}
      ${found && html`<${Composer} found=${found} session=${session} draft=${draft} caller=${caller} call=${call} state=${sent.state}
        onDraft=${(next) => { disarm(); setDraft(next); }} onCaller=${(next) => { disarm(); setCaller(next); }} onSend=${send} onLink=${link} />`}
      ${view.data && html`<${Contract} found=${view.data} />`}
    </section>
    <${Outcome} state=${sent.state} answer=${sent.answer} error=${sent.error} call=${sent.call} onRemedy=${remedy} />`;
}

function fromLink(route) {
  const found = route.query.body ? readJson(route.query.body) : null;
  return found && "value" in found && isObject(found.value) ? { ...EMPTY, input: found.value } : null;
}

function callerOfLink(route) {
  const { scopes, as: name } = route.query;
  return { ...(scopes ? { scopes: splitScopes(scopes).join(", ") } : {}), ...(name ? { by: "name", name } : {}) };
}

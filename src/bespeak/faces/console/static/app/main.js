// The page: takes the token out of the address, asks who is served, and shows the view that the address names.
import { html, render, useEffect, useState } from "./html.js";
import { NeedsCredential, NeedsToken } from "./access.js";
import { get, keepToken } from "./api.js";
import { ContractView } from "./contract.js";
import { History, OneExchange } from "./history.js";
import { Keys } from "./keys.js";
import { readRoute, readToken } from "./lib/routes.js";
import { readRows } from "./lib/search.js";
import { Live } from "./live.js";
import { Problem } from "./parts.js";
import { Try } from "./try.js";
import { Work } from "./work.js";

const VIEWS = { try: Try, endpoint: Try, live: Live, panels: Work, contract: ContractView, history: History, exchange: OneExchange };
const TITLES = { try: "Try", endpoint: "Try", live: "Live", panels: "Work", contract: "Contract", history: "History", exchange: "History" };
const NAMES = [["try", "#/"], ["live", "#/live"], ["panels", "#/panels"], ["contract", "#/contract"], ["history", "#/history"]];

/** Take the token of the printed link; it does not stay in the address. */
function takeToken() {
  if (!location.hash.includes("token=")) return false;
  const token = readToken(location.hash);
  history.replaceState(null, "", `${location.pathname}#/`);
  if (token) keepToken(token);
  return token !== null;
}

function App() {
  const [access, setAccess] = useState({ state: "asking" });
  const [route, setRoute] = useState(() => readRoute(location.hash));
  const ask = async () => {
    try {
      const session = await get("session"), rows = await get("endpoints");
      setAccess({ state: "ready", session, rows: readRows(rows) });
    } catch (error) {
      const needs = error.code === "console-token-wrong" ? "token" : error.status === 401 || error.status === 403 ? "credential" : "failed";
      setAccess((before) => ({ state: needs, error, again: before.again }));
    }
  };
  useEffect(() => {
    ask();
    const move = () => (takeToken() ? ask() : null, setRoute(readRoute(location.hash)));
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  const { session, rows } = access;
  useEffect(() => {
    document.body.dataset.view = access.state === "ready" ? route.view : access.state;
    document.title = `${TITLES[route.view]} · ${session?.service.name ?? "Console"}`;
  }, [route.view, access.state]);
  const again = () => (setAccess({ state: "asking", again: true }), ask());
  const View = VIEWS[route.view];
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top"><a class="brand" href="#/"><span>${session?.service.name ?? "Console"}</span></a>
      ${session && html`<nav aria-label="Views">${NAMES.map(([name, to]) => html`<a key=${name} href=${to}
        aria-current=${TITLES[route.view] === TITLES[name] ? "page" : null}>${TITLES[name]}</a>`)}</nav>
        <span class="where soft"><code>${session.agtp ?? session.http}</code> ${session.identity === "declared" ? "callers are believed" : "callers are verified"}</span>`}
      <${Keys} /></header>
    <main id="main" tabindex="-1">${access.state === "ready" ? html`<${View} session=${session} rows=${rows} route=${route} />`
      : access.state === "token" ? html`<${NeedsToken} onToken=${again} />`
      : access.state === "credential" ? html`<${NeedsCredential} error=${access.again ? access.error : null} onBearer=${again} />`
      : access.state === "failed" ? html`<section class="page narrow"><h1>Console</h1><${Problem} error=${access.error}><button type="button" onClick=${again}>Try again</button><//></section>`
      : html`<section class="page"><h1>Console</h1><p class="soft">Loading…</p></section>`}</main>`;
}

/** Move the focus without changing the address, which names the view. */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

takeToken();
render(html`<${App} />`, document.getElementById("app"));

// What the service does over time: panels of the server and of its extensions.
import { html } from "./html.js";
import { get, post } from "./api.js";
import { Blocks } from "./blocks.js";
import { viewLink } from "./lib/routes.js";
import { Empty, Problem, useView } from "./parts.js";

export function Work({ session, route }) {
  const panels = session.panels ?? [];
  const chosen = route.id ?? panels[0]?.name;
  return html`<section class="page work" aria-label="Work"><div class="head"><h1>Work</h1></div>
    ${panels.length ? html`<nav class="tabs" aria-label="Panels">${panels.map((one) => html`<a key=${one.name} href=${viewLink("panels", one.name)}
      aria-current=${one.name === chosen ? "page" : null}>${one.title}</a>`)}</nav>` : !route.id && html`<${Empty}>This server does not offer panels of its work.<//>`}
    ${chosen && html`<${Panel} key=${chosen} name=${chosen} query=${route.query} />`}</section>`;
}

function Panel({ name, query: { key = "", after = "" } }) {
  const [view, reload, put] = useView(() => get("panel", { name, key, after }), [name, key, after]);
  const act = async (action, key, fields) => put(await post("panel", { name, action, key, fields }));
  return html`<div class="panel" data-panel=${name} data-state=${view.state}>
    <div class="tools">${(key || after) && html`<a href=${viewLink("panels", name)}>Back to all</a>`}<button type="button" class="small" onClick=${reload}>Load again</button></div>
    ${view.state === "error" && html`<${Problem} error=${view.error} />`}
    ${!view.data && view.state === "loading" && html`<p class="soft">Loading…</p>`}
    ${view.data && html`<${Blocks} blocks=${view.data.blocks} onAct=${act} links=${(query) => viewLink("panels", name, query)} />`}</div>`;
}

// What an endpoint means: its semantic block first, then what a caller must know.
import { html } from "./html.js";
import { endpointLink } from "./lib/routes.js";
import { CallName, Facts, Impact, Json } from "./parts.js";

/** The head of an endpoint: name, intent, outcome, and how far a call goes. */
export function Meaning({ found }) {
  const { semantic } = found;
  return html`<header class="meaning">
    <h1><${CallName} method=${found.method} path=${found.path} /></h1>
    <p class="lead">${semantic.intent || found.description}</p>
    <p class="tags"><span class="tag"><${Impact} of=${semantic.impact} /></span>
      <span class="tag">${semantic.is_idempotent ? "idempotent: safe to repeat" : "not idempotent"}</span>
      ${found.confirmed && html`<span class="tag warn">somebody else confirms it</span>`}
      ${found.internal && html`<span class="tag">internal: in no published document</span>`}
      ${found.deprecated && html`<span class="tag warn">deprecated</span>`}</p>
    ${found.deprecated && html`<p class="note">${deprecation(found.deprecated)}</p>`}
    <${Facts} facts=${[["Outcome", semantic.outcome], ["Actor", semantic.actor], ["Capability", semantic.capability],
      ["Confidence", semantic.confidence === undefined ? "" : `${Math.round(semantic.confidence * 100)} %`],
      ["Scopes", found.required_scopes.length ? found.required_scopes.map((one) => html`<code class="chip">${one}</code> `) : "none needed"],
      ["On HTTP", found.http && html`<code>${found.http}</code>`], ["MCP tool", found.tool && html`<code>${found.tool}</code>`]]} />
  </header>`;
}

function deprecation({ deprecated_in: since, removed_in: until, successor }) {
  const { method, path } = successor ?? {};
  return html`Deprecated${since && ` since ${since}`}${until && `; it goes in ${until}`}.
    ${successor && html` Use <a href=${method && path ? endpointLink(method, path) : "#/"}><${CallName} method=${method} path=${path} /></a>.`}`;
}

/** The rest of the contract: errors and schemas. */
export function Contract({ found }) {
  return html`<section class="schemas" aria-label="Contract of the endpoint">
    ${found.errors.length > 0 && html`<details><summary>Errors <span class="soft">${found.errors.length}</span></summary>
      <dl class="facts">${found.errors.map((one) => html`<div key=${one.name}><dt><code>${one.name}</code></dt><dd>${one.description}</dd></div>`)}</dl></details>`}
    <details><summary>Input schema</summary><${Json} value=${found.input_schema} /></details>
    <details><summary>Output schema</summary><${Json} value=${found.output_schema} /></details>
  </section>`;
}

/** An endpoint that the contract does not have: it can be called all the same, to see which gate refuses it. */
export const Unknown = ({ method, path }) => html`<header class="meaning">
  <h1><${CallName} method=${method} path=${path} /></h1>
  <p class="note">The contract has no such endpoint. Send it all the same, and see which gate refuses it and what the contract offers instead.</p>
</header>`;

// Who calls, with which scopes and further headers.
import { html } from "./html.js";
import { HEADERS, freshKey, missingScopes, splitScopes } from "./lib/call.js";

export function CallerFields({ caller, onCaller, required, identity }) {
  const set = (name) => (event) => onCaller({ ...caller, [name]: event.currentTarget.value });
  const missing = missingScopes(required, caller.scopes);
  const declare = () => onCaller({ ...caller, scopes: [...splitScopes(caller.scopes), ...missing].join(", ") });
  return html`<fieldset class="caller"><legend>Caller</legend>
    <div class="pair">
      <div class="field"><label for="caller-by">Known by</label>
        <select id="caller-by" value=${caller.by} onChange=${set("by")}>
          <option value="name">a name</option><option value="id">Agent-ID</option></select></div>
      ${caller.by === "name" ? html`<div class="field grow"><label for="caller-name">Name</label>
          <input id="caller-name" autocomplete="off" placeholder="nobody" value=${caller.name} onInput=${set("name")} /></div>`
        : html`<div class="field grow"><label for="caller-id">Agent-ID</label>
          <input id="caller-id" class="mono" autocomplete="off" placeholder="64 hexadecimal digits" value=${caller.agentId} onInput=${set("agentId")} /></div>`}
    </div>
    <div class="field"><label for="caller-scopes">Scopes that it declares</label>
      <input id="caller-scopes" class="mono" autocomplete="off" spellcheck=${false} placeholder="none" value=${caller.scopes} onInput=${set("scopes")} />
      ${missing.length > 0 && html`<p class="about soft">Needed here too: <button type="button" class="small" onClick=${declare}>Declare ${missing.join(", ")}</button></p>`}</div>
    ${(identity === "verified" || caller.bearer) && html`<div class="field"><label for="caller-bearer">Credential (Authorization: Bearer)</label>
      <input id="caller-bearer" type="password" autocomplete="off" value=${caller.bearer} onInput=${set("bearer")} />
      <p class="about soft">Kept in memory until the page is closed.</p></div>`}
  </fieldset>`;
}

export function HeaderFields({ headers, onChange }) {
  const put = (at, pair) => onChange(headers.map((one, place) => (place === at ? pair : one)));
  return html`<details class="headers" open=${headers.length > 0}><summary>Headers <span class="soft">${headers.length || ""}</span></summary>
    ${headers.map(([name, value], at) => html`<div class="pair" key=${at} role="group" aria-label=${`Header ${at + 1}`}>
      <input list="header-names" aria-label="Name" value=${name} placeholder="Name" onInput=${(event) => put(at, [event.currentTarget.value, value])} />
      <input class="grow mono" aria-label="Value" value=${value} placeholder="Value" onInput=${(event) => put(at, [name, event.currentTarget.value])} />
      <button type="button" class="small" aria-label=${`Remove header ${name}`} onClick=${() => onChange(headers.filter((_, place) => place !== at))}>Remove</button>
    </div>`)}
    <datalist id="header-names">${HEADERS.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
    <div class="tools"><button type="button" class="small" onClick=${() => onChange([...headers, ["", ""]])}>Add a header</button>
      <button type="button" class="small" onClick=${() => onChange([...headers.filter(([name]) => name !== "Idempotency-Key"), ["Idempotency-Key", freshKey()]])}>Add an Idempotency-Key</button></div>
  </details>`;
}

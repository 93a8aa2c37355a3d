// One exchange: the answer and what it means, the gates, remedies, headers, and both messages as sent.
import { html } from "./html.js";
import { Gates } from "./gates.js";
import { Progress } from "./progress.js";
import { CopyButton, Json, Problem, Status, duration } from "./parts.js";

/** The region of the answer in the view of an endpoint. */
export function Outcome({ state, answer, error, call, onRemedy }) {
  const refusing = answer?.gates.find((one) => one.verdict === "refused");
  return html`<section id="exchange" class="exchange" aria-labelledby="exchange-title" tabindex="-1" data-state=${state}
      data-status-code=${answer?.status} data-code=${answer?.error?.code} data-gate=${refusing?.gate}>
    <h2 id="exchange-title" class="unseen">Exchange</h2>
    <div role="status">${state === "sending" ? html`<p class="soft">Sending…</p>` : error ? html`<${Problem} error=${error} />`
      : answer ? html`<${Summary} answer=${answer} />` : html`<div class="empty"><p>Nothing is sent yet.</p>
        <p>The answer appears here, with every gate that judged the call.</p></div>`}</div>
    ${answer && state !== "sending" && html`<${Details} answer=${answer} call=${call} onRemedy=${onRemedy} />`}
  </section>`;
}

/** Status, meaning, and for a refusal why. */
export function Summary({ answer }) {
  const refusing = answer.gates.find((one) => one.verdict === "refused");
  return html`<div class="summary">
    <p class="verdict"><${Status} status=${answer.status} reason=${answer.reason} refused=${answer.refused} />
      <span class="soft">${duration(answer.ms)}</span></p>
    ${answer.error && html`<p class="why">${answer.error.message}</p>`}
    ${refusing && html`<p class="soft">${refusing.about ? html`Refused by the gate <b>${refusing.gate}</b>: ${refusing.about}.` : html`Every gate let it pass; the <b>${refusing.gate}</b> refused it.`}</p>`}
    ${answer.meaning && html`<p class="soft">${answer.meaning}</p>`}
  </div>`;
}

/** Everything else about an exchange. */
export function Details({ answer, call, onRemedy }) {
  const told = answer.headers.filter(([, , meaning]) => meaning);
  const plain = answer.headers.filter(([, , meaning]) => !meaning);
  return html`
    ${onRemedy && answer.remedies.length > 0 && html`<section class="remedies" aria-label="Remedies"><h3>What the contract offers</h3>
      <div class="tools">${answer.remedies.map((one) => html`<button type="button" key=${one.label} data-remedy=${one.kind}
        onClick=${() => onRemedy(one)}>${one.label}</button>`)}</div></section>`}
    ${onRemedy && html`<${Progress} key=${answer.at} answer=${answer} call=${call} />`}
    <section aria-label="Gates"><h3>Gates</h3><${Gates} gates=${answer.gates} /></section>
    <section aria-label="Answer"><h3>Answer ${answer.body !== null && answer.body !== undefined && html`<${CopyButton} text=${() => JSON.stringify(answer.body, null, 2)} what="the answer" />`}</h3>
      ${answer.body === null || answer.body === undefined ? html`<p class="soft">${hasBody(answer) ? "The body is not JSON; it is shown as sent." : "The answer has no body. It was carried out all the same if the status says so."}</p>`
        : html`<${Json} value=${answer.body} />`}</section>
    <section aria-label="Headers"><h3>Headers</h3><table class="headers"><thead class="unseen"><tr><th>Name</th><th>Value</th></tr></thead><tbody>
      ${[...told, ...plain].map(([name, value, meaning]) => html`<tr key=${name}><th scope="row">${name}</th>
        <td><code>${value}</code>${meaning && html`<span class="soft">${meaning}</span>`}</td></tr>`)}</tbody></table></section>
    <section aria-label="As sent"><h3>As sent</h3>
      <details open><summary>Request</summary><pre>${answer.request}</pre><${CopyButton} text=${answer.request} what="the request" /></details>
      <details><summary>Response</summary><pre>${answer.response}</pre><${CopyButton} text=${answer.response} what="the response" /></details></section>`;
}

const hasBody = (answer) => /\n\n[^]/.test(answer.response ?? "");

// Findings of the linter, or changes between two contracts: how bad, where, and what to do.
import { html } from "./html.js";
import { many } from "./parts.js";

const SIGNS = { error: "✕", warning: "!", breaking: "✕", info: "i", compatible: "✓" };

export function Findings({ findings }) {
  if (!findings.length) return html`<p class="empty">✓ Nothing to report.</p>`;
  return html`<p class="soft">${many(findings.length, "finding")}</p><ul class="findings">${findings.map((one, at) => {
    const level = String(one.severity ?? one.level ?? one.kind ?? "");
    const place = one.place ?? one.location ?? [one.path ?? one.file, one.line, one.column].filter(Boolean).join(":");
    return html`<li key=${at} data-severity=${level} data-rule=${one.rule ?? one.code}>
      <p><span class=${`tag level-${level}`}><span aria-hidden="true">${SIGNS[level] ?? "·"}</span> ${level}</span> <code>${one.rule ?? one.code ?? ""}</code> <b>${one.message}</b></p>
      ${place && html`<p class="soft"><code>${typeof place === "string" ? place : JSON.stringify(place)}</code></p>`}
      ${(one.frame ?? one.source) && html`<pre>${one.frame ?? one.source}</pre>`}
      ${one.help && html`<p>${one.help}</p>`}</li>`;
  })}</ul>`;
}

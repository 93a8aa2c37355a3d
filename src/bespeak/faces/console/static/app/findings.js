// Findings of the linter, or changes between two contracts: how bad, where, and what to do.
import { html } from "./html.js";
import { many } from "./parts.js";

const SIGNS = { error: "✕", warning: "!", breaking: "✕", info: "i", risky: "!", safe: "✓" };

const BUMPS = { major: "Callers may break: it needs a new major version.", minor: "It needs a new minor version.", patch: "It needs a new patch version.", none: "The version may stay." };

export function Findings({ findings, summary = {}, bump = "" }) {
  if (!findings.length) return html`<p class="empty">✓ Nothing to report.</p>`;
  const counts = Object.entries(summary).filter(([name, count]) => count > 0 && name in SIGNS).map(([name, count]) => `${count} ${name}`).join(", ");
  return html`<p>${many(findings.length, "finding")}${counts && `: ${counts}`}. ${BUMPS[bump] ?? ""}</p><ul class="findings">${findings.map((one, at) => {
    const level = String(one.severity ?? one.level ?? "");
    const place = [one.file, one.line, one.column].filter(Boolean).join(":") || [one.endpoint, one.pointer].filter(Boolean).join("  ");
    return html`<li key=${at} data-severity=${level} data-rule=${one.rule}>
      <p><span class=${`tag level-${level}`}><span aria-hidden="true">${SIGNS[level] ?? "·"}</span> ${level}</span> <code title=${one.name}>${one.rule}</code> <b>${one.message}</b></p>
      ${place && html`<p class="soft"><code>${place}</code>${typeof one.source === "string" && ` ${one.source}`}</p>`}
      ${one.frame && html`<pre>${one.frame}</pre>`}
      ${one.help && html`<p>${one.help}</p>`}${one.fix?.title && html`<p class="soft">${one.fix.safe ? "Safe fix" : "Fix to review"}: ${one.fix.title}</p>`}</li>`;
  })}</ul>`;
}

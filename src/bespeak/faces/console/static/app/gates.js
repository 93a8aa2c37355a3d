// The trail of a call: every gate in order, with what it decides, how long it took and what it said.
import { html } from "./html.js";
import { duration } from "./parts.js";

const SIGNS = { passed: "✓", refused: "✕", "not reached": "–" };

export function Gates({ gates }) {
  const most = Math.max(...gates.map((one) => one.ms ?? 0), 0.001);
  return html`<ol class="gates">${gates.map((one, at) => html`<li key=${at} class=${one.verdict.replace(" ", "-")} data-gate=${one.gate} data-verdict=${one.verdict}>
    <span class="sign" aria-hidden="true">${SIGNS[one.verdict] ?? "·"}</span>
    <span class="gate"><b>${one.gate}</b> <span class="verdict-word">${one.verdict}</span> <span class="soft about">${one.about}</span></span>
    <span class="took soft">${duration(one.ms)}</span>
    <svg class="share" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width=${one.ms ? Math.max(1, (one.ms / most) * 100) : 0} height="4" /></svg>
  </li>`)}</ol>`;
}

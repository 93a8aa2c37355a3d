// Two small charts of the last minute: how many calls with which outcome, and how long they took.
import { html } from "./html.js";
import { SECONDS, fillSeconds, rateOf, roundUp } from "./lib/series.js";
import { duration } from "./parts.js";

const HEIGHT = 60, STEP = 6;

export function Charts({ buckets, now }) {
  const seconds = fillSeconds(buckets, now);
  const sum = (name) => buckets.reduce((total, one) => total + one[name], 0);
  const rate = rateOf(buckets, now), last = buckets.at(-1);
  return html`<div class="charts">
    <figure><figcaption><b>${rate.toLocaleString("en", { maximumFractionDigits: 1 })}</b> per second
      <span class="legend"><span class="k ok">✓ ${sum("ok").toLocaleString("en")} carried out</span> <span class="k refused">✕ ${sum("refused").toLocaleString("en")} refused</span> <span class="k failed">! ${sum("failed").toLocaleString("en")} failed</span></span></figcaption>
      <${Rate} seconds=${seconds} /></figure>
    <figure><figcaption><b>${last?.p50 ? duration(last.p50) : "–"}</b> half of the calls, <b>${last?.p99 ? duration(last.p99) : "–"}</b> 99 of 100
      <span class="legend"><span class="k p50">— p50</span> <span class="k p99">┄ p99</span></span></figcaption>
      <${Latency} seconds=${seconds} /></figure>
  </div>`;
}

function Rate({ seconds }) {
  const most = roundUp(Math.max(...seconds.map((one) => one?.seen ?? 0)));
  const bars = seconds.flatMap((one, at) => {
    let y = HEIGHT;
    return one ? ["ok", "refused", "failed"].filter((name) => one[name]).map((name) => {
      const height = Math.max(1, (one[name] / most) * HEIGHT);
      y -= height;
      return html`<rect key=${`${at}${name}`} class=${name} x=${at * STEP} y=${Math.max(0, y)} width=${STEP - 1.5} height=${height} />`;
    }) : [];
  });
  return html`<${Frame} most=${most.toLocaleString("en")} label=${`Calls per second over the last minute, at most ${most}`}>${bars}<//>`;
}

function Latency({ seconds }) {
  const most = roundUp(Math.max(...seconds.map((one) => one?.p99 ?? 0)));
  const line = (name) => seconds.map((one, at) => (one?.[name] ? `${at * STEP + STEP / 2},${(HEIGHT - (one[name] / most) * (HEIGHT - 2) - 1).toFixed(1)}` : "")).filter(Boolean).join(" ");
  const dots = (name) => seconds.map((one, at) => one?.[name] && html`<circle key=${at} class=${name} cx=${at * STEP + STEP / 2} cy=${HEIGHT - (one[name] / most) * (HEIGHT - 2) - 1} r="1.4" />`);
  return html`<${Frame} most=${duration(most)} label=${`Duration over the last minute, at most ${duration(most)}`}>
    <polyline class="p99" points=${line("p99")} /><polyline class="p50" points=${line("p50")} />${dots("p50")}${dots("p99")}<//>`;
}

const Frame = ({ most, label, children }) => html`<div class="frame"><span class="scale soft" aria-hidden="true">${most}</span>
  <svg viewBox="0 0 ${SECONDS * STEP} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${label}>${children}</svg></div>`;

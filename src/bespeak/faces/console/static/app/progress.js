// Work that goes on after the answer: CHECK is asked about it, by the same caller, until it has ended.
import { html, useEffect, useState } from "./html.js";
import { post } from "./api.js";
import { readProgress, workOf } from "./lib/call.js";
import { Json } from "./parts.js";

const SHORTEST = 100, LONGEST = 2000; // milliseconds between two questions

export function Progress({ answer, call }) {
  const target = workOf(answer);
  const [told, tell] = useState(null);
  const [stopped, stop] = useState(false);
  useEffect(() => {
    if (!target || stopped) return undefined;
    let timer = 0, wait = SHORTEST, here = true;
    const headers = Object.fromEntries(Object.entries(call.headers ?? {}).filter(([name]) => name === "Authorization" || name === "Session-ID"));
    const asked = { ...call, method: "CHECK", path: "/", input: { target }, headers };
    const look = async () => {
      const found = await post("exchange", asked).then(readProgress, (error) => ({ state: "unknown", goesOn: false, error, done: 0 }));
      if (!here) return;
      tell(found);
      if (found.goesOn) timer = setTimeout(look, (wait = Math.min(wait * 1.5, LONGEST)));
    };
    look();
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [target, stopped]);
  if (!target) return null;
  const counted = told?.done ? `${told.done.toLocaleString("en")}${told.total ? ` of ${told.total.toLocaleString("en")}` : ""} ${told.unit}` : "";
  return html`<section class="progress" aria-label="Progress" data-work=${told?.state ?? "asking"}><h3>Work that goes on</h3>
    <p role="status"><b>${told?.state ?? "asking"}</b> ${counted}</p>
    ${(!told || told.goesOn) && html`<progress aria-label="Progress" value=${told?.total ? told.done : undefined} max=${told?.total || undefined} />`}
    ${told?.goesOn && html`<button type="button" class="small" onClick=${() => stop(true)}>Stop asking</button>`}
    ${told && !told.goesOn && told.error && html`<p class="why">${told.error.message ?? JSON.stringify(told.error)}</p>`}
    ${told?.result !== undefined && html`<${Json} value=${told.result} />`}
    <p class="soft">Asked as <code>CHECK / target=${target}</code></p></section>`;
}

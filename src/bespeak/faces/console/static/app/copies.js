// The call as text in the ways in which it is made elsewhere. Copying sends nothing.
import { html, useEffect, useState } from "./html.js";
import { deriveAgent, writeCopies } from "./lib/copy.js";
import { CopyButton } from "./parts.js";

export function Copies({ call, session, found }) {
  const [way, setWay] = useState("bespeak call");
  const [agent, setAgent] = useState("");
  useEffect(() => {
    let here = true;
    setAgent(call.agent_id ?? "");
    if (call.as) deriveAgent(call.as).then((id) => here && setAgent(id ?? ""));
    return () => void (here = false);
  }, [call.as, call.agent_id]);
  const texts = writeCopies(call, session, found, agent);
  const chosen = way in texts ? way : Object.keys(texts)[0];
  return html`<section class="copies" aria-label="Copy as">
    <div class="tools"><span class="soft" id="copy-as">Copy as</span>
      <span role="group" aria-labelledby="copy-as" class="segments">${Object.keys(texts).map((name) => html`<button type="button" key=${name}
        aria-pressed=${String(name === chosen)} onClick=${() => setWay(name)}>${name}</button>`)}</span>
      <${CopyButton} text=${texts[chosen]} what=${`the call as ${chosen}`} hotkey /></div>
    <pre data-copy=${chosen}>${texts[chosen]}</pre>
  </section>`;
}

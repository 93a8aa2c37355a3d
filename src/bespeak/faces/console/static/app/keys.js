// Keys for those who do not use a mouse: what they do, and the list of them.
import { html, useEffect, useState } from "./html.js";
import { Dialog } from "./parts.js";

const KEYS = [["/", "Search endpoints"], ["j k", "Next and previous row"], ["Enter", "Open the row"], ["Ctrl Enter", "Send the call"],
  ["c", "Copy the call"], ["?", "Show the keys"], ["Esc", "Close, leave a field"]];

export function Keys() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const inField = event.target.closest?.("input, textarea, select");
      if (event.key === "Escape" && inField) return inField.blur();
      if (inField) return;
      if (event.key === "/") search();
      else if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
      else if (event.key === "c") /** @type {HTMLElement | null} */ (document.querySelector("[data-hotkey=copy]"))?.click();
      else if (event.key === "?") setOpen(true);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return html`<button type="button" class="small help" aria-haspopup="dialog" onClick=${() => setOpen(true)}><kbd>?</kbd><span class="unseen"> Keys</span></button>
    ${open && html`<${Dialog} title="Keys" onClose=${() => setOpen(false)}><table class="keys"><tbody>${KEYS.map(([keys, what]) => html`<tr key=${keys}>
      <th scope="row">${keys.split(" ").map((one) => html`<kbd>${one}</kbd> `)}</th><td>${what}</td></tr>`)}</tbody></table>
      <button type="button" class="primary" onClick=${() => setOpen(false)}>Close</button><//>`}`;
}

function search() {
  const focus = () => document.getElementById("search")?.focus();
  if (document.getElementById("search")?.checkVisibility()) return focus();
  location.hash = "#/";
  requestAnimationFrame(() => requestAnimationFrame(focus));
}

/** Move the focus to the next or previous link of the rows. @param {number} step */
function move(step) {
  /** @type {HTMLElement[]} */
  const links = Array.from(document.querySelectorAll("[data-rows] a:not(.button)"));
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const from = at < 0 ? links.findIndex((one) => one.getAttribute("aria-current")) : at;
  links[Math.min(links.length - 1, Math.max(0, from + step))]?.focus();
}

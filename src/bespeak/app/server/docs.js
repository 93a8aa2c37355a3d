// Search and copying. The pages are complete without them.
"use strict";
const docs = document.body.dataset.docs;
const words = document.getElementById("words");
const found = document.getElementById("found");
const count = document.getElementById("count");
const SHOWN = 50;
const WORDS = { informational: "only reads", reversible: "changes something that can be undone", irreversible: "cannot be undone" };
let index = null;

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

async function load() {
  index ??= fetch(`${docs}/index.json`).then((reply) => {
    if (!reply.ok) throw new Error(reply.status);
    return reply.json();
  }).then((rows) => rows.map((row) => ({ row, text: row.join(" ").toLowerCase() })));
  return index;
}

function show(rows, most) {
  found.firstElementChild.replaceChildren(...rows.slice(0, most).map(([method, path, intent, impact]) => {
    const item = document.createElement("li");
    const place = (method + path).split("/").map(encodeURIComponent).join("/");
    const link = element("a", "", { href: `${docs}/${place}` });
    const code = document.createElement("code");
    code.append(element("b", method), ` ${path}`);
    link.append(code);
    item.append(link, " ", element("span", WORDS[impact] ?? impact, { class: `badge ${impact}` }), element("p", intent));
    return item;
  }));
}

async function search() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = wanted.length === 0;
  if (found.hidden) { count.textContent = ""; return; }
  try {
    const rows = (await load()).filter((one) => wanted.every((word) => one.text.includes(word))).map((one) => one.row);
    show(rows, SHOWN);
    count.textContent = rows.length > SHOWN ? `${rows.length} found, ${SHOWN} shown` : `${rows.length} found`;
  } catch {
    index = null;
    count.textContent = "The search does not answer; reload the page.";
  }
}

function copyButton(block) {
  const button = element("button", "Copy", { type: "button", "aria-label": `Copy ${block.ariaLabel ?? "the schema"}` });
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected: press Ctrl-C";
    }
  });
  block.before(button);
}

document.getElementById("search").hidden = false;
words.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, [contenteditable]");
  if (event.key === "/" && !typing) { event.preventDefault(); words.focus(); }
  if (event.key === "Escape" && event.target === words) { words.value = ""; search(); }
});
document.querySelectorAll("pre[data-copy]").forEach(copyButton);

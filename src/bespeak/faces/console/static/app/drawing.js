// A drawing of nodes and edges, and the same as a list for those who do not see it.
import { html, useMemo } from "./html.js";
import { HEIGHT, WIDTH, layOut } from "./lib/graph.js";

const SIGNS = { done: "✓", completed: "✓", passed: "✓", failed: "✕", refused: "✕", running: "▸", waiting: "…" };
const LONGEST = 22; // characters of a label inside its box

export function Drawing({ block }) {
  const drawn = useMemo(() => layOut(block.nodes, block.edges), [block]);
  const label = new Map(block.nodes.map((node) => [node.id, node.label]));
  return html`<div class="scroll drawing" tabindex="0" role="region" aria-label=${`${block.title}, drawn`}>
      <svg width=${drawn.width} height=${drawn.height} viewBox="0 0 ${drawn.width} ${drawn.height}" role="img" aria-label=${`${block.nodes.length} nodes, ${block.edges.length} edges; listed below`}>
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
        ${drawn.edges.map((edge, at) => html`<path key=${at} class="edge" d=${edge.path} marker-end="url(#arrow)"><title>${edge.label}</title></path>`)}
        ${drawn.nodes.map((node) => html`<g key=${node.id} class="node" data-node=${node.id} data-state=${node.state} transform="translate(${node.x} ${node.y})">
          <rect width=${WIDTH} height=${HEIGHT} rx="6" /><title>${node.label}${node.state ? `: ${node.state}` : ""}</title>
          <text x="10" y=${node.state ? 17 : 25}>${cut(node.label)}</text>
          ${node.state && html`<text class="small" x="10" y="32">${SIGNS[node.state] ?? "·"} ${node.state}</text>`}</g>`)}
      </svg></div>
    <details><summary>As a list</summary><ul>${block.nodes.map((node) => html`<li key=${node.id}>${node.label}${node.state && ` (${node.state})`}</li>`)}
      ${block.edges.map(([from, to, words], at) => html`<li key=${`e${at}`}>${label.get(from) ?? from} → ${label.get(to) ?? to}${words && `: ${words}`}</li>`)}</ul></details>`;
}

const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

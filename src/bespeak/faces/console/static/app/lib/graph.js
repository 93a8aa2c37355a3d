// Places for the nodes of a drawing: in columns, so that edges go to the right.

export const WIDTH = 168, HEIGHT = 40, GAP_X = 56, GAP_Y = 16;

/** @param {{id: string, label: string, state?: string}[]} nodes @param {string[][]} edges */
export function layOut(nodes, edges) {
  const column = new Map(nodes.map((node) => [node.id, 0]));
  const known = edges.filter(([from, to]) => column.has(from) && column.has(to) && from !== to);
  // In a graph without circles, as many rounds as there are nodes suffice; with one, the rounds end it.
  for (let round = 0; round < Math.min(nodes.length, 60); round += 1) {
    let moved = false;
    for (const [from, to] of known) {
      const wanted = (column.get(from) ?? 0) + 1;
      if (wanted > (column.get(to) ?? 0) && wanted < nodes.length) {
        column.set(to, wanted);
        moved = true;
      }
    }
    if (!moved) break;
  }
  /** @type {Map<number, number>} */
  const used = new Map();
  const ranks = [...new Set(column.values())].sort((a, b) => a - b);
  const placed = nodes.map((node) => {
    const x = ranks.indexOf(column.get(node.id) ?? 0), y = used.get(x) ?? 0;
    used.set(x, y + 1);
    return { ...node, x: x * (WIDTH + GAP_X) + 1, y: y * (HEIGHT + GAP_Y) + 1 };
  });
  const at = new Map(placed.map((node) => [node.id, node]));
  const rows = Math.max(1, ...used.values());
  return {
    nodes: placed, width: Math.max(1, ranks.length) * (WIDTH + GAP_X) - GAP_X + 2, height: rows * (HEIGHT + GAP_Y) - GAP_Y + 2,
    edges: known.map(([from, to, label]) => ({ from, to, label: label ?? "", path: curve(at.get(from), at.get(to)) })),
  };
}

/** @param {any} from @param {any} to */
function curve(from, to) {
  const x1 = from.x + WIDTH, y1 = from.y + HEIGHT / 2, x2 = to.x, y2 = to.y + HEIGHT / 2, bend = Math.max(24, Math.abs(x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

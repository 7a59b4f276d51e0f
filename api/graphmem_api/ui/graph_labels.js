// Labels that do not cover one another: the best connected entities are named first, the rest when there is room.

const FONT_SIZE = 12;
const LINE_HEIGHT = 20;
const CHARACTER_WIDTH = 7.2;
const MAX_LABELS = 90;
const CELL = 120;

/** Name as many entities as there is room for, in letters of the same size at every zoom. */
export function placeLabels(cy) {
  const zoom = cy.zoom();
  const [width, height] = [cy.width(), cy.height()];
  const taken = new Map();
  const shown = new Set();
  for (const node of cy.nodes().sort((a, b) => b.data("rank") - a.data("rank"))) {
    const { x, y } = node.renderedPosition();
    if (x < 0 || y < 0 || x > width || y > height) continue;
    const half = (node.data("name").length * CHARACTER_WIDTH) / 2 + 3;
    const top = y + (node.data("size") * zoom) / 2;
    if (claim(taken, { left: x - half, right: x + half, top, bottom: top + LINE_HEIGHT })) shown.add(node.id());
    if (shown.size >= MAX_LABELS) break;
  }
  cy.batch(() => {
    for (const node of cy.nodes()) node.data({ label: shown.has(node.id()) ? node.data("name") : "", fontSize: FONT_SIZE / zoom });
    for (const edge of cy.edges()) edge.data("fontSize", (FONT_SIZE - 1) / zoom);
  });
}

/** Take a rectangle unless it meets one that is taken; a grid keeps the comparisons few. */
function claim(taken, box) {
  const cells = [];
  for (let column = Math.floor(box.left / CELL); column <= Math.floor(box.right / CELL); column += 1) {
    for (let row = Math.floor(box.top / CELL); row <= Math.floor(box.bottom / CELL); row += 1) cells.push(`${column} ${row}`);
  }
  const meets = (other) => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
  if (cells.some((cell) => taken.get(cell)?.some(meets))) return false;
  for (const cell of cells) taken.set(cell, [...(taken.get(cell) ?? []), box]);
  return true;
}

// How the drawing looks: one colour for each type of entity, in the colours of the page.

const PALETTE_SIZE = 12;
const FIRST_TYPES = ["Person", "Place", "Organization", "Thing"];
const STORAGE_KEY = "graphmem.types";
const knownTypes = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null") ?? FIRST_TYPES;
const paletteIndexes = new Map(knownTypes.map((type, index) => [type, index]));

/** Return the palette index of an entity type, which stays the same in this tab. */
export function hueOf(type) {
  if (!paletteIndexes.has(type)) {
    paletteIndexes.set(type, paletteIndexes.size);
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify([...paletteIndexes.keys()]));
  }
  return paletteIndexes.get(type) % PALETTE_SIZE;
}

/** Return the style sheet of the drawing with the colours that the page has now, light or dark. */
export function readGraphStyle(container) {
  const colour = makeColourReader(container);
  const [ink, faint, ground, accent] = ["--ink", "--faint", "--card", "--accent"].map(colour);
  const hues = Array.from({ length: PALETTE_SIZE }, (_, index) => ({
    selector: `node[hue = ${index}]`, style: { "background-color": colour(`--hue-${index}`) },
  }));
  return [
    { selector: "node", style: {
      width: "data(size)", height: "data(size)", label: "data(label)", "font-size": "data(fontSize)", color: ink,
      "font-family": "system-ui, sans-serif", "text-valign": "bottom", "text-margin-y": 3, "min-zoomed-font-size": 7,
      "text-outline-color": ground, "text-outline-width": 2, "border-width": 1.5, "border-color": ground, "z-index": 2,
    } },
    ...hues,
    { selector: "edge", style: {
      width: 1.5, "line-color": faint, "target-arrow-color": faint, "target-arrow-shape": "triangle", "arrow-scale": 0.8,
      "curve-style": "bezier", "line-opacity": 0.75, "font-size": "data(fontSize)", "font-family": "system-ui, sans-serif", color: ink,
      "text-background-color": ground, "text-background-opacity": 1, "text-background-padding": 2, "text-rotation": "autorotate",
    } },
    { selector: "edge.named", style: { label: "data(name)", "z-index": 3 } },
    { selector: "node.centre", style: { "font-weight": 700 } },
    { selector: "node.named", style: { label: "data(name)", "z-index": 4 } },
    { selector: ".dimmed", style: { opacity: 0.25 } },
    { selector: "edge.added", style: { "line-color": colour("--added"), "target-arrow-color": colour("--added"), width: 4 } },
    { selector: "edge.removed", style: { "line-color": colour("--removed"), "target-arrow-color": colour("--removed"), width: 4, "line-style": "dashed" } },
    { selector: "edge.changed", style: { "line-color": colour("--changed"), "target-arrow-color": colour("--changed"), width: 4 } },
    { selector: "edge.lit, edge:selected", style: { "line-color": accent, "target-arrow-color": accent, width: 4, "line-opacity": 1 } },
    { selector: "node.lit, node:selected", style: { "border-color": accent, "border-width": 4 } },
    { selector: "core", style: { "active-bg-opacity": 0.1, "active-bg-color": accent } },
  ];
}

/** Return a reader of custom properties: a probe computes them, because `light-dark()` is not resolved otherwise. */
function makeColourReader(container) {
  const probe = document.createElement("span");
  container.append(probe);
  const colours = new Map();
  queueMicrotask(() => probe.remove());
  return (name) => {
    if (!colours.has(name)) {
      probe.style.color = `var(${name})`;
      colours.set(name, getComputedStyle(probe).color);
    }
    return colours.get(name);
  };
}

// Drawing the graph around an entity as SVG: a spring layout that comes out the same each time.

import { svgElement } from "./dom.js";

const MAX_NODES = 60;
const PIXELS_PER_NODE = 7000;
const ITERATIONS = 260;
const MARGIN = { x: 58, y: 34 };
const HUES = 8;

/** Return which of the palette's colours a type has. */
export function hueOf(type) {
  const known = ["Person", "Place", "Organization", "Thing"].indexOf(type);
  if (known >= 0) return known;
  let sum = 0;
  for (const letter of type) sum = (sum * 31 + letter.codePointAt(0)) % 9973;
  return 4 + (sum % (HUES - 4));
}

/** Return a drawing of `graph` (`{nodes, edges}`) and how many of its entities are in it. */
export function drawGraph(graph, centreId, width, height, onEntity, onMemory) {
  const nodes = nearestNodes(graph, centreId, Math.min(MAX_NODES, Math.max(12, Math.floor((width * height) / PIXELS_PER_NODE))));
  const links = groupLinks(graph, nodes);
  layOutNodes(nodes, links, centreId, width, height);
  const narrow = width < 520;
  const labelled = links.length <= (narrow ? 8 : 30);
  const picture = svgElement("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-describedby": "memories-title neighbours-title",
    "aria-label": `A drawing of ${nodes.size} entities and what ties them; the same is listed below.`,
  });
  picture.append(svgElement("defs", {}, svgElement("marker",
    { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
    svgElement("path", { d: "M0 0 8 4 0 8z", class: "arrow" }))));
  for (const link of links) picture.append(linkElement(link, labelled, onMemory));
  for (const node of nodes.values()) picture.append(nodeElement(node, node.id === centreId, narrow ? 16 : 24, onEntity));
  return { picture, drawn: nodes.size };
}

/** Light up what a memory or an entity is in the drawing. */
export function highlight(holder, kind, id, lit) {
  for (const part of holder.querySelectorAll(`.${kind}`)) {
    if (part.dataset.ids.split(" ").includes(id)) part.classList.toggle("lit", lit);
  }
}

function nearestNodes(graph, centreId, most) {
  const known = new Map(graph.nodes.map((node) => [node.id, node]));
  const reached = new Map();
  let frontier = known.has(centreId) ? [centreId] : [];
  for (let step = 0; frontier.length && reached.size < most; step += 1) {
    for (const id of frontier) if (reached.size < most) reached.set(id, { ...known.get(id), step, alone: [] });
    const next = graph.edges.flatMap((edge) => (edge.object ? [[edge.subject.id, edge.object.id], [edge.object.id, edge.subject.id]] : []))
      .filter(([from, to]) => reached.has(from) && !reached.has(to) && known.has(to)).map(([, to]) => to);
    frontier = [...new Set(next)];
  }
  return reached;
}

function groupLinks(graph, nodes) {
  const links = new Map();
  for (const edge of graph.edges) {
    const from = nodes.get(edge.subject.id);
    const to = edge.object && nodes.get(edge.object.id);
    if (from && !edge.object) from.alone.push(edge);
    if (!from || !to || from === to) continue;
    const key = [from.id, to.id].sort().join(" ");
    if (!links.has(key)) links.set(key, { from, to, edges: [] });
    links.get(key).edges.push(edge);
  }
  return [...links.values()];
}

/** Lay out in a square, then stretch it to the picture: names are wide, so they need more room beside than below. */
function layOutNodes(nodes, links, centreId, width, height) {
  const side = Math.sqrt(width * height);
  const edge = { x: (MARGIN.x * side) / width, y: (MARGIN.y * side) / height };
  const all = [...nodes.values()];
  const steps = Math.max(1, ...all.map((node) => node.step));
  const rings = groupByStep(all);
  for (const [step, ring] of rings) {
    ring.forEach((node, index) => {
      const angle = (2 * Math.PI * (index + 0.35 * step)) / ring.length - Math.PI / 2;
      node.x = side / 2 + (Math.cos(angle) * step * (side / 2 - edge.x)) / steps;
      node.y = side / 2 + (Math.sin(angle) * step * (side / 2 - edge.y)) / steps;
    });
  }
  const ideal = (0.75 * side) / Math.sqrt(Math.max(all.length, 3));
  for (let round = 0; round < ITERATIONS; round += 1) {
    const heat = 0.12 * ideal * (1 - round / ITERATIONS);
    for (const node of all) [node.dx, node.dy] = [0, 0];
    applyRepulsion(all, ideal);
    for (const { from, to } of links) applyAttraction(from, to, ideal);
    for (const node of all) {
      if (node.id === centreId) continue;
      const far = Math.hypot(node.dx, node.dy) || 1;
      node.x = clamp(node.x + (node.dx / far) * Math.min(far, heat), edge.x, side - edge.x);
      node.y = clamp(node.y + (node.dy / far) * Math.min(far, heat), edge.y, side - edge.y);
    }
  }
  for (const node of all) [node.x, node.y] = [(node.x * width) / side, (node.y * height) / side];
}

function groupByStep(all) {
  const rings = new Map();
  for (const node of all) rings.set(node.step, [...(rings.get(node.step) ?? []), node]);
  return rings;
}

function applyRepulsion(all, ideal) {
  for (let first = 0; first < all.length; first += 1) {
    for (let second = first + 1; second < all.length; second += 1) {
      const [one, other] = [all[first], all[second]];
      const [x, y] = [one.x - other.x || 0.1 * (second - first), one.y - other.y || 0.1];
      const force = (ideal * ideal) / (x * x + y * y);
      one.dx += x * force; one.dy += y * force;
      other.dx -= x * force; other.dy -= y * force;
    }
  }
}

function applyAttraction(from, to, ideal) {
  const [x, y] = [from.x - to.x, from.y - to.y];
  const force = Math.hypot(x, y) / ideal;
  from.dx -= x * force; from.dy -= y * force;
  to.dx += x * force; to.dy += y * force;
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));

/** Return how far from a node's middle a line ends; below it, beyond the name. */
const linkGap = (node, downwards) => (node.step === 0 ? 20 : 15) + 18 * Math.max(0, downwards);

function linkElement({ from, to, edges }, labelled, onMemory) {
  const far = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(to.x - from.x) / far, (to.y - from.y) / far];
  const [near, away] = [linkGap(from, y), linkGap(to, -y)];
  const ends = { x1: from.x + x * near, y1: from.y + y * near, x2: to.x - x * away, y2: to.y - y * away };
  const forth = edges.some((edge) => edge.subject.id === from.id);
  const back = edges.some((edge) => edge.subject.id === to.id);
  const label = edges.length === 1 ? edges[0].predicate.toLowerCase().replaceAll("_", " ") : `${edges.length} memories`;
  const group = svgElement("g", { class: "link", "data-ids": edges.map((edge) => edge.id).join(" "), onClick: () => onMemory(edges[0]) },
    svgElement("title", {}, edges.map((edge) => edge.content).join("\n")),
    svgElement("line", { ...ends, class: "hit" }),
    svgElement("line", { ...ends, class: "line", "marker-end": forth && "url(#arrow)", "marker-start": back && "url(#arrow)" }));
  if (labelled) group.append(svgElement("text", { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 3 }, truncate(label, 24)));
  return group;
}

function nodeElement(node, isCentre, longest, onEntity) {
  const size = isCentre ? 17 : 12;
  const group = svgElement("g", {
    class: `node hue-${hueOf(node.type)}${isCentre ? " centre" : ""}`, "data-ids": node.id,
    transform: `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`, onClick: () => onEntity(node.id),
  },
    svgElement("title", {}, [`${node.name} (${node.type})`, ...node.alone.map((edge) => edge.content)].join("\n")),
    svgElement("circle", { r: size }),
    svgElement("text", { y: size + 13 }, truncate(node.name, longest)));
  if (node.alone.length) {
    group.append(svgElement("circle", { class: "tally", cx: size - 2, cy: 2 - size, r: 8 }),
      svgElement("text", { class: "count", x: size - 2, y: 5.5 - size }, String(node.alone.length)));
  }
  return group;
}

function truncate(text, most) {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}

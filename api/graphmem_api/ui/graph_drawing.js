// Drawing the graph around an entity as SVG, with a deterministic spring layout.

import { svgElement } from "./dom.js";

const MAX_NODES = 60;
const PIXELS_PER_NODE = 7000;
const ITERATIONS = 260;
const MARGIN = { x: 58, y: 34 };
const HUES = 8;
const FIXED_TYPES = ["Person", "Place", "Organization", "Thing"];

/** Return the number of the palette colour of an entity type. */
export function hueOf(type) {
  const index = FIXED_TYPES.indexOf(type);
  if (index >= 0) return index;
  let sum = 0;
  for (const letter of type) sum = (sum * 31 + letter.codePointAt(0)) % 9973;
  return FIXED_TYPES.length + (sum % (HUES - FIXED_TYPES.length));
}

/** Return a drawing of `graph` (`{nodes, edges}`) and the number of entities in it. */
export function drawGraph(graph, centreId, width, height, onEntity, onMemory) {
  const nodes = nearestNodes(graph, centreId, Math.min(MAX_NODES, Math.max(12, Math.floor((width * height) / PIXELS_PER_NODE))));
  const links = groupLinks(graph, nodes);
  layOutNodes(nodes, links, centreId, width, height);
  const isNarrow = width < 520;
  const isLabelled = links.length <= (isNarrow ? 8 : 30);
  const picture = svgElement("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-describedby": "memories-title neighbours-title",
    "aria-label": `A drawing of ${nodes.size} entities and the memories between them; they are listed below too.`,
  });
  picture.append(svgElement("defs", {}, svgElement("marker",
    { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
    svgElement("path", { d: "M0 0 8 4 0 8z", class: "arrow" }))));
  for (const link of links) picture.append(linkElement(link, isLabelled, onMemory));
  for (const node of nodes.values()) picture.append(nodeElement(node, node.id === centreId, isNarrow ? 16 : 24, onEntity));
  return { picture, drawn: nodes.size };
}

/** Highlight a memory or an entity in the drawing, or remove the highlight. */
export function highlight(holder, kind, id, isLit) {
  for (const part of holder.querySelectorAll(`.${kind}`)) {
    if (part.dataset.ids.split(" ").includes(id)) part.classList.toggle("lit", isLit);
  }
}

/** Return up to `limit` nodes by id, those with the fewest steps from the centre first. */
function nearestNodes(graph, centreId, limit) {
  const known = new Map(graph.nodes.map((node) => [node.id, node]));
  const reached = new Map();
  let frontier = known.has(centreId) ? [centreId] : [];
  for (let step = 0; frontier.length && reached.size < limit; step += 1) {
    for (const id of frontier) if (reached.size < limit) reached.set(id, { ...known.get(id), step, ownMemories: [] });
    const next = graph.edges.flatMap((edge) => (edge.object ? [[edge.subject.id, edge.object.id], [edge.object.id, edge.subject.id]] : []))
      .filter(([from, to]) => reached.has(from) && !reached.has(to) && known.has(to)).map(([, to]) => to);
    frontier = [...new Set(next)];
  }
  return reached;
}

/** Return one link for each pair of connected nodes; memories about one node alone are added to it. */
function groupLinks(graph, nodes) {
  const links = new Map();
  for (const edge of graph.edges) {
    const from = nodes.get(edge.subject.id);
    const to = edge.object && nodes.get(edge.object.id);
    if (from && !edge.object) from.ownMemories.push(edge);
    if (!from || !to || from === to) continue;
    const key = [from.id, to.id].sort().join(" ");
    if (!links.has(key)) links.set(key, { from, to, edges: [] });
    links.get(key).edges.push(edge);
  }
  return [...links.values()];
}

/** Lay nodes out in a square, then stretch it to the picture: labels are wider than high. */
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
    const temperature = 0.12 * ideal * (1 - round / ITERATIONS);
    for (const node of all) [node.dx, node.dy] = [0, 0];
    applyRepulsion(all, ideal);
    for (const { from, to } of links) applyAttraction(from, to, ideal);
    for (const node of all) {
      if (node.id === centreId) continue;
      const force = Math.hypot(node.dx, node.dy) || 1;
      const move = Math.min(force, temperature) / force;
      node.x = clamp(node.x + node.dx * move, edge.x, side - edge.x);
      node.y = clamp(node.y + node.dy * move, edge.y, side - edge.y);
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
      const [node, other] = [all[first], all[second]];
      const [x, y] = [node.x - other.x || 0.1 * (second - first), node.y - other.y || 0.1];
      const force = (ideal * ideal) / (x * x + y * y);
      node.dx += x * force; node.dy += y * force;
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

/** Return the distance from a node's centre at which a line ends; below the node it leaves space for the label. */
const linkGap = (node, downwards) => (node.step === 0 ? 20 : 15) + 18 * Math.max(0, downwards);

function linkElement({ from, to, edges }, isLabelled, onMemory) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const [startGap, endGap] = [linkGap(from, y), linkGap(to, -y)];
  const ends = { x1: from.x + x * startGap, y1: from.y + y * startGap, x2: to.x - x * endGap, y2: to.y - y * endGap };
  const pointsForward = edges.some((edge) => edge.subject.id === from.id);
  const pointsBack = edges.some((edge) => edge.subject.id === to.id);
  const label = edges.length === 1 ? edges[0].predicate.toLowerCase().replaceAll("_", " ") : `${edges.length} memories`;
  const group = svgElement("g", { class: "link", "data-ids": edges.map((edge) => edge.id).join(" "), onClick: () => onMemory(edges[0].id) },
    svgElement("title", {}, edges.map((edge) => edge.content).join("\n")),
    svgElement("line", { ...ends, class: "hit" }),
    svgElement("line", { ...ends, class: "line", "marker-end": pointsForward && "url(#arrow)", "marker-start": pointsBack && "url(#arrow)" }));
  if (isLabelled) group.append(svgElement("text", { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 3 }, truncate(label, 24)));
  return group;
}

function nodeElement(node, isCentre, maxLabel, onEntity) {
  const size = isCentre ? 17 : 12;
  const group = svgElement("g", {
    class: `node hue-${hueOf(node.type)}${isCentre ? " centre" : ""}`, "data-ids": node.id,
    transform: `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`, onClick: () => onEntity(node.id),
  },
    svgElement("title", {}, [`${node.name} (${node.type})`, ...node.ownMemories.map((edge) => edge.content)].join("\n")),
    svgElement("circle", { r: size }),
    svgElement("text", { y: size + 13 }, truncate(node.name, maxLabel)));
  if (node.ownMemories.length) {
    group.append(svgElement("circle", { class: "tally", cx: size - 2, cy: 2 - size, r: 8 }),
      svgElement("text", { class: "count", x: size - 2, y: 5.5 - size }, String(node.ownMemories.length)));
  }
  return group;
}

function truncate(text, limit) {
  const letters = [...text];
  return letters.length <= limit ? text : `${letters.slice(0, limit - 1).join("")}…`;
}

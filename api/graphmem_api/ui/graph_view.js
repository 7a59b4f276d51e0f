// The drawing of a graph: zoom, pan, drag, selection by mouse and keyboard. Cytoscape.js draws and lays out.

import cytoscape from "./vendor/cytoscape-3.34.4.esm.min.mjs";

import { announce, element, pluralize } from "./dom.js";
import { hueOf, readGraphStyle } from "./graph_style.js";
import { placeLabels } from "./graph_labels.js";
import { toWords, truncate } from "./wording.js";

const LABEL_LENGTH = 28;
const SMALL_GRAPH = 120;
const ZOOM_STEP = 1.35;
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
const darkScheme = matchMedia("(prefers-color-scheme: dark)");

export class GraphView {
  #cy = null;
  #labelTimer = null;
  #positions = new Map();
  #centreId = null;
  #memories = new Map();

  /** `onEntity(id)` and `onMemory(id)` open what the user has chosen; `signal` ends the drawing. */
  constructor({ onEntity, onMemory, signal, id = "drawing" }) {
    this.onEntity = onEntity;
    this.onMemory = onMemory;
    this.canvas = element("div", {
      id, class: "canvas", tabindex: "0", role: "application", "aria-roledescription": "graph drawing", "aria-label": "Graph",
      "aria-describedby": `${id}-hint`, onKeyDown: (event) => this.#onKey(event),
      onFocus: () => this.#cy?.userZoomingEnabled(true), onBlur: () => this.#cy?.userZoomingEnabled(false),
    });
    this.canvas.addEventListener("pointerdown", (event) => this.#onPointerDown(event), { capture: true });
    const tool = (name, label, action) => element("button", { type: "button", class: "tool", "aria-label": label, title: label, onClick: action }, name);
    this.details = element("p", { class: "hint details", "aria-hidden": "true" });
    this.legend = element("ul", { class: "legend", "aria-label": "Colours" });
    this.node = element("div", { class: "graph" },
      element("div", { class: "tools" },
        tool("+", "Zoom in", () => this.#zoom(ZOOM_STEP)), tool("−", "Zoom out", () => this.#zoom(1 / ZOOM_STEP)), tool("⤢", "Fit", () => this.fit())),
      this.canvas, this.details, this.legend,
      element("p", { class: "hint", id: `${id}-hint` }, "Click or tap, then scroll or pinch to zoom; drag to move; click twice to open. Keys: arrows select, Enter opens, + and − zoom, 0 fits."));
    const observer = new ResizeObserver(() => this.fit());
    observer.observe(this.canvas);
    const restyle = () => this.#cy?.style(readGraphStyle(this.canvas));
    darkScheme.addEventListener("change", restyle);
    signal.addEventListener("abort", () => {
      darkScheme.removeEventListener("change", restyle);
      observer.disconnect();
      this.#cy?.destroy();
      this.#cy = null;
    });
  }

  /** Draw `{nodes, memories}`; `classOf(memory)` marks memories, such as `added`. Entities keep their place. */
  show({ nodes, memories }, { centreId = null, classOf = () => "" } = {}) {
    this.#start();
    this.#centreId = centreId;
    this.#memories = new Map(memories.map((memory) => [memory.id, memory]));
    const elements = toElements(nodes, memories, centreId, classOf);
    const isNew = elements.some(({ data }) => !data.source && !this.#positions.has(data.id));
    this.#cy.batch(() => {
      this.#cy.elements().remove();
      this.#cy.add(elements.map((item, index) => this.#place(item, index)));
    });
    if (isNew) this.#layOut();
    this.#rememberPositions();
    this.fit();
    const types = [...new Set(nodes.map((node) => node.type))].sort();
    this.legend.replaceChildren(...types.map((type) => element("li", {}, element("span", { class: `dot hue-${hueOf(type)}`, "aria-hidden": "true" }), type)));
    this.canvas.setAttribute("aria-label", `Graph of ${pluralize(nodes.length, "entity", "entities")} and ${pluralize(this.#cy.edges().length, "connection")}`);
    this.details.textContent = "";
  }

  /** Show the whole graph. */
  fit() {
    if (!this.#cy) return;
    this.#cy.resize();
    this.#cy.fit(undefined, 40);
    if (this.#cy.zoom() > 1.6) {
      this.#cy.zoom(1.6);
      this.#cy.center();
    }
    this.#placeLabels();
  }

  /** Highlight an entity or a memory, or remove the highlight. */
  highlight(id, isLit) {
    this.#cy?.getElementById(id).toggleClass("lit named", isLit);
  }

  #start() {
    if (this.#cy) return;
    this.#cy = cytoscape({
      container: this.canvas, style: readGraphStyle(this.canvas), minZoom: 0.05, maxZoom: 6, userZoomingEnabled: false,
      boxSelectionEnabled: false, selectionType: "single",
    });
    this.#cy.on("viewport resize", () => this.#scheduleLabels());
    this.#cy.on("dragfree", "node", () => { this.#rememberPositions(); this.#placeLabels(); });
    this.#cy.on("mouseover", "node, edge", ({ target }) => this.#point(target, true));
    this.#cy.on("mouseout", "node, edge", ({ target }) => this.#point(target, false));
    this.#cy.on("select unselect", "node, edge", ({ target, type }) => this.#point(target, type === "select"));
    this.#cy.on("tap", ({ target }) => { this.canvas.focus({ preventScroll: true }); if (target === this.#cy) this.details.textContent = ""; });
    this.#cy.on("dbltap", "node", ({ target }) => this.#open(target));
    this.#cy.on("onetap", "edge", ({ target }) => this.#open(target));
  }

  /** Let a finger move the drawing only when it has the focus: else nobody could scroll past it. */
  #onPointerDown(event) {
    this.#cy?.userPanningEnabled(event.pointerType !== "touch" || document.activeElement === this.canvas);
  }

  /** Start an entity at its last place, a new one on a spiral around the centre: the layout is the same each time. */
  #place(item, index) {
    if (item.data.source) return item;
    const radius = 60 * Math.sqrt(index);
    const angle = index * GOLDEN_ANGLE;
    const position = this.#positions.get(item.data.id) ?? { x: Math.cos(angle) * radius, y: Math.sin(angle) * radius };
    return { ...item, position: { ...position } };
  }

  #layOut() {
    const count = this.#cy.nodes().length;
    const isSmall = count <= SMALL_GRAPH;
    this.#cy.layout({
      name: "cose", animate: false, randomize: false, fit: false, nodeDimensionsIncludeLabels: isSmall, componentSpacing: 60,
      numIter: isSmall ? 800 : 90, idealEdgeLength: () => (isSmall ? 90 : 50), nodeRepulsion: () => (isSmall ? 12000 : 6000),
      nodeOverlap: 8, gravity: isSmall ? 0.6 : 1, coolingFactor: isSmall ? 0.99 : 0.96, initialTemp: isSmall ? 300 : 200,
    }).run();
    this.#widen();
  }

  /** Stretch the layout to the form of the canvas: labels are wider than high. */
  #widen() {
    const { width, height } = this.canvas.getBoundingClientRect();
    const stretch = Math.min(1.8, Math.max(1, (0.75 * width) / (height || 1)));
    this.#cy.nodes().positions((node) => ({ x: node.position("x") * stretch, y: node.position("y") }));
  }

  #rememberPositions() {
    for (const node of this.#cy.nodes()) this.#positions.set(node.id(), { ...node.position() });
  }

  #scheduleLabels() {
    clearTimeout(this.#labelTimer);
    this.#labelTimer = setTimeout(() => this.#placeLabels(), 60);
  }

  #placeLabels() {
    if (this.#cy) placeLabels(this.#cy);
  }

  /** Name what the pointer or the selection is on, and what it is connected to. */
  #point(target, isOn) {
    if (!isOn && target.selected()) return;
    target.toggleClass("named", isOn);
    if (target.isNode()) target.connectedEdges().toggleClass("named", isOn && target.connectedEdges().length <= 25);
    this.details.textContent = isOn ? this.#describe(target) : "";
  }

  #describe(target) {
    if (target.isEdge()) return this.#memories.get(target.id())?.content ?? "";
    const own = target.data("ownFacts");
    const facts = own.length ? `: ${own.slice(0, 3).join(" · ")}${own.length > 3 ? ` · ${own.length - 3} more` : ""}` : "";
    return `${target.data("name")} (${target.data("type")})${facts}`;
  }

  #open(target) {
    if (target.isEdge()) this.onMemory(target.id());
    else this.onEntity(target.id());
  }

  #zoom(factor) {
    if (!this.#cy) return;
    const { width, height } = this.canvas.getBoundingClientRect();
    this.#cy.zoom({ level: this.#cy.zoom() * factor, renderedPosition: { x: width / 2, y: height / 2 } });
    this.#placeLabels();
  }

  #onKey(event) {
    if (!this.#cy || event.ctrlKey || event.metaKey || event.altKey) return;
    const selected = this.#cy.$(":selected").first();
    if (DIRECTIONS[event.key]) this.#selectTowards(...DIRECTIONS[event.key], selected);
    else if (event.key === "Enter" && selected.nonempty()) this.#open(selected);
    else if (event.key === "+" || event.key === "=") this.#zoom(ZOOM_STEP);
    else if (event.key === "-") this.#zoom(1 / ZOOM_STEP);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  /** Select the nearest entity in a direction; without a selection, the centre or the first entity. */
  #selectTowards(x, y, selected) {
    const centre = this.#cy.getElementById(this.#centreId ?? "");
    let target = centre.nonempty() ? centre : this.#cy.nodes().first();
    if (selected.nonempty() && selected.isNode()) {
      const from = selected.position();
      const distance = (node) => {
        const [dx, dy] = [node.position("x") - from.x, node.position("y") - from.y];
        const along = dx * x + dy * y;
        return along <= 0 ? Infinity : Math.hypot(dx, dy) + 2 * Math.abs(dx * y - dy * x);
      };
      target = this.#cy.nodes().difference(selected).min(distance);
      if (!target.ele || target.value === Infinity) return;
      target = target.ele;
    }
    if (target.empty()) return;
    this.#cy.elements().unselect();
    target.select();
    announce(this.#describe(target));
  }
}

/** Return the elements of the drawing; memories without an object belong to their subject. */
function toElements(nodes, memories, centreId, classOf) {
  const known = new Map(nodes.map((node) => [node.id, { ...node, degree: 0, ownFacts: [] }]));
  const edges = [];
  for (const memory of memories) {
    const subject = known.get(memory.subject.id);
    const object = memory.object && known.get(memory.object.id);
    if (!subject) continue;
    if (!object || object === subject) {
      subject.ownFacts.push(memory.content);
      continue;
    }
    subject.degree += 1;
    object.degree += 1;
    edges.push({
      group: "edges", classes: classOf(memory),
      data: { id: memory.id, source: subject.id, target: object.id, name: truncate(toWords(memory.predicate), LABEL_LENGTH), fontSize: 11 },
    });
  }
  const ordered = [...known.values()].sort((a, b) => (b.id === centreId) - (a.id === centreId) || b.degree - a.degree || (a.id < b.id ? -1 : 1));
  return [...ordered.map((node) => ({
    group: "nodes", classes: node.id === centreId ? "centre" : "",
    data: {
      id: node.id, name: truncate(node.name, LABEL_LENGTH), type: node.type, hue: hueOf(node.type), label: "", fontSize: 12,
      ownFacts: node.ownFacts, rank: node.id === centreId ? Infinity : node.degree + node.ownFacts.length / 10,
      size: Math.min(46, 16 + 3 * Math.sqrt(node.degree + node.ownFacts.length) + (node.id === centreId ? 8 : 0)),
    },
  })), ...edges];
}

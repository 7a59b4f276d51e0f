// Finding an entity and looking at what lies around it, at any point of both axes of time.

import { latestOnly } from "./api.js";
import { byId, showError, pluralize, element, announce } from "./dom.js";
import { drawGraph, highlight, hueOf } from "./graph_drawing.js";
import { TimeAxis, formatInterval, ceilToMillisecond } from "./time_axis.js";

const PAGE = 20;
const TYPING_MS = 250;

export class Explorer {
  #api = null;
  #entity = null;
  #graph = { nodes: [], edges: [] };
  #cursor = null;
  #typing = null;

  /** `openHistory(memoryId)` shows a memory's versions; `go(entityId)` leads to another entity. */
  constructor(openHistory, go) {
    this.openHistory = openHistory;
    this.openEntity = go;
    this.valid = new TimeAxis("valid", "True in the world", "What held at this time:", () => this.refresh());
    this.known = new TimeAxis("known", "Known to graphmem", "What was believed at this time:", () => this.refresh());
    byId("axes").append(this.valid.node, this.known.node);
    byId("find-form").addEventListener("submit", (event) => { event.preventDefault(); this.find(); });
    byId("find").addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#setBusy(true);
      this.#typing = setTimeout(() => this.find(), TYPING_MS);
    });
    byId("more").addEventListener("click", () => this.find(this.#cursor));
    byId("depth").addEventListener("change", () => this.refresh());
    new ResizeObserver(() => this.#drawGraph()).observe(byId("drawing"));
  }

  /** Begin with a reader's key, or end with null: nothing of the last reader stays. */
  setSession(api) {
    this.#api = api;
    this.#entity = null;
    byId("find").value = "";
    this.#renderGraph({ nodes: [], edges: [] });
    byId("found").replaceChildren();
    this.valid.setValue(null, true);
    this.known.setValue(null, true);
    byId("entity-title").textContent = "No entity chosen";
    byId("entity-about").textContent = "Find one, or choose from the list.";
  }

  #search = latestOnly(async (signal, query, cursor) => {
    const named = query && !cursor ? this.#api.getUserData("entities/lookup", { q: query, limit: 1 }, signal) : { entities: [] };
    const listing = this.#api.getUserData("entities", { query, limit: PAGE, cursor }, signal);
    const answers = () => signal.aborted || this.#setBusy(query !== byId("find").value.trim());
    const [listed, looked] = await Promise.all([listing, named]).finally(answers);
    const known = new Map(listed.items.map((each) => [each.id, each]));
    const first = looked.entities.map((each) => known.get(each.entity.id) ?? each.entity);
    return { items: [...new Map([...first, ...listed.items].map((each) => [each.id, each])).values()], cursor: listed.next_cursor };
  });

  /** List the entities that the text finds; with a cursor, more of them. */
  async find(cursor = null) {
    clearTimeout(this.#typing);
    this.#setBusy(true);
    await this.#runReportingErrors(async () => {
      const found = await this.#search(byId("find").value.trim(), cursor);
      if (!found) return;
      this.#cursor = found.cursor;
      const rows = found.items.map((each) => element("li", {},
        element("button", { type: "button", class: "row", "data-id": each.id, onClick: () => this.openEntity(each.id) },
          element("span", { class: `dot hue-${hueOf(each.type)}`, "aria-hidden": "true" }),
          element("span", { class: "name" }, each.name), " ", element("span", { class: "hint" }, each.type))));
      if (cursor) byId("found").append(...rows);
      else byId("found").replaceChildren(...(rows.length ? rows : [element("li", { class: "hint" }, "No entity is found by this.")]));
      byId("more").hidden = !found.cursor;
      this.#markCurrent();
      announce(cursor ? `${rows.length} more.` : `${pluralize(rows.length, "entity", "entities")}${found.cursor ? " and more" : ""} found.`);
    });
  }

  /** While the list is busy, it does not answer what the reader has typed, and its rows may go at any moment. */
  #setBusy(on) {
    byId("found").setAttribute("aria-busy", String(on));
  }

  #loadEntity = latestOnly(async (signal, entityId) => {
    const path = `entities/${encodeURIComponent(entityId)}`;
    return Promise.all([
      this.#api.getUserData(path, {}, signal),
      this.#api.getUserData(`${path}/memories`, { include_superseded: true, limit: 200 }, signal),
    ]);
  });

  /** Look at one entity: the one chosen last, however long an earlier one takes to come. */
  async showEntity(entityId) {
    await this.#runReportingErrors(async () => {
      const found = await this.#loadEntity(entityId);
      if (!found) return;
      const [entity, ever] = found;
      this.#entity = entity;
      this.valid.setChangeTimes(ever.items.flatMap((each) => [each.valid_at, each.invalid_at]));
      this.known.setChangeTimes([entity.created_at, ...ever.items.flatMap((each) => [each.created_at, each.expired_at])]);
      byId("entity-title").textContent = entity.name;
      const others = entity.aliases.filter((each) => each !== entity.name);
      byId("entity-about").textContent = [entity.type, others.length ? `also ${others.join(", ")}` : "", entity.summary]
        .filter(Boolean).join(" · ");
      this.#markCurrent();
      await this.refresh();
      byId("entity-title").focus();
    });
  }

  /** Look at the graph as of what a version says of both axes. */
  showAsOf(validAt, knownAt) {
    this.valid.setValue(validAt && ceilToMillisecond(validAt), true);
    this.known.setValue(knownAt && ceilToMillisecond(knownAt), true);
    return this.refresh();
  }

  #loadGraph = latestOnly((signal) => this.#api.getUserData(`entities/${encodeURIComponent(this.#entity.id)}/graph`, {
    depth: byId("depth").value, valid_as_of: this.valid.parameter, known_as_of: this.known.parameter,
  }, signal));

  /** Read the graph anew at the times and the depth chosen. */
  async refresh() {
    if (!this.#entity) return;
    await this.#runReportingErrors(async () => {
      const graph = await this.#loadGraph();
      if (!graph) return;
      this.#renderGraph(graph);
      const about = `${pluralize(graph.edges.length, "memory", "memories")}, ${pluralize(graph.nodes.length, "entity", "entities")}`;
      announce(`${about}; true in the world: ${this.valid.label.textContent}; known: ${this.known.label.textContent}.`);
    });
  }

  #renderGraph(graph) {
    this.#graph = graph;
    const tied = new Set([this.#entity?.id, ...graph.edges.flatMap((each) => [each.subject.id, each.object?.id])]);
    const around = graph.nodes.filter((each) => each.id !== this.#entity?.id && tied.has(each.id));
    byId("memories-title").textContent = `Memories (${graph.edges.length})`;
    byId("memories").replaceChildren(...graph.edges.map((each) => this.#memoryItem(each)));
    byId("neighbours-title").textContent = `Entities around it (${around.length})`;
    byId("neighbours").replaceChildren(...around.map((each) => this.#neighbourItem(each)));
    const types = [...new Set(graph.nodes.map((each) => each.type))].sort();
    byId("legend").replaceChildren(...types.map((type) => element("li", {},
      element("span", { class: `dot hue-${hueOf(type)}`, "aria-hidden": "true" }), type)));
    this.#drawGraph();
  }

  #memoryItem(memory) {
    const ends = [memory.subject.name, memory.predicate.toLowerCase().replaceAll("_", " "), memory.object?.name].filter(Boolean);
    const sure = `${Math.round(memory.confidence * 100)} % sure`;
    return element("li", {},
      element("button", {
        type: "button", class: "row memory", "data-id": memory.id, "aria-haspopup": "dialog",
        onClick: () => this.openHistory(memory.id), ...this.#highlightHandlers("link", memory.id),
      },
      element("span", { class: "name" }, memory.content),
      element("span", { class: "hint" }, `${ends.join(" → ")} · ${memory.type} · ${formatInterval(memory.valid_at, memory.invalid_at, "always")} · ${sure}`)));
  }

  #neighbourItem(entity) {
    return element("li", {}, element("button", {
      type: "button", "data-id": entity.id, onClick: () => this.openEntity(entity.id), ...this.#highlightHandlers("node", entity.id),
    }, element("span", { class: `dot hue-${hueOf(entity.type)}`, "aria-hidden": "true" }), `${entity.name} (${entity.type})`));
  }

  #highlightHandlers(kind, id) {
    const lit = (on) => () => highlight(byId("drawing"), kind, id, on);
    return { onFocus: lit(true), onBlur: lit(false), onMouseEnter: lit(true), onMouseLeave: lit(false) };
  }

  #drawGraph() {
    const holder = byId("drawing");
    const width = holder.clientWidth;
    if (!this.#entity || !width) {
      holder.replaceChildren();
      return;
    }
    const height = Math.round(Math.min(Math.max(width * 0.5, 280), 420));
    const { picture, drawn } = drawGraph(this.#graph, this.#entity.id, width, height, this.openEntity, this.openHistory);
    const all = this.#graph.nodes.length;
    holder.replaceChildren(picture, ...(drawn < all ? [element("p", { class: "hint" }, `${drawn} of ${all} entities are drawn; the lists have all.`)] : []));
  }

  #markCurrent() {
    for (const row of byId("found").querySelectorAll("button")) {
      row.toggleAttribute("aria-current", row.dataset.id === this.#entity?.id);
    }
  }

  async #runReportingErrors(work) {
    try {
      await work();
      showError(null);
    } catch (error) {
      showError(error);
    }
  }
}

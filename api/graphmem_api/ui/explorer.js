// Finding an entity and showing the graph around it, as of any valid time and any known time.

import { latestOnly } from "./api.js";
import { announce, byId, element, pluralize, reportErrors } from "./dom.js";
import { drawGraph, highlight, hueOf } from "./graph_drawing.js";
import { TimeAxis, ceilToMillisecond, formatInterval, timeZone } from "./time_axis.js";

const PAGE_SIZE = 20;
const TYPING_MS = 250;

export class Explorer {
  #api = null;
  #entity = null;
  #graph = { nodes: [], edges: [] };
  #cursor = null;
  #typingTimer = null;

  /** `openHistory(memoryId)` shows the versions of a memory; `openEntity(entityId)` shows another entity. */
  constructor(openHistory, openEntity) {
    this.openHistory = openHistory;
    this.openEntity = openEntity;
    this.valid = new TimeAxis("valid", "True in the world", "What was true at this time:", () => this.refresh());
    this.known = new TimeAxis("known", "Known to graphmem", "What graphmem knew at this time:", () => this.refresh());
    byId("axes").append(this.valid.node, this.known.node);
    byId("time-zone").textContent = `in ${timeZone}`;
    byId("find-form").addEventListener("submit", (event) => { event.preventDefault(); this.find(); });
    byId("find").addEventListener("input", () => {
      clearTimeout(this.#typingTimer);
      this.#setBusy(true);
      this.#typingTimer = setTimeout(() => this.find(), TYPING_MS);
    });
    byId("more").addEventListener("click", () => this.find(this.#cursor));
    byId("depth").addEventListener("change", () => this.refresh());
    new ResizeObserver(() => this.#drawGraph()).observe(byId("drawing"));
  }

  /** Start a session, or with null end it; the data of the last session is removed. */
  setSession(api) {
    this.#api = api;
    this.#entity = null;
    byId("find").value = "";
    this.#renderGraph({ nodes: [], edges: [] });
    byId("found").replaceChildren();
    this.valid.setValue(null, true);
    this.known.setValue(null, true);
    byId("entity-title").textContent = "No entity selected";
    byId("entity-about").textContent = "Find one, or select it from the list.";
  }

  #search = latestOnly(async (signal, query, cursor) => {
    const lookup = query && !cursor ? this.#api.getUserData("entities/lookup", { q: query, limit: 1 }, signal) : { entities: [] };
    const listing = this.#api.getUserData("entities", { query, limit: PAGE_SIZE, cursor }, signal);
    const finish = () => signal.aborted || this.#setBusy(query !== byId("find").value.trim());
    const [page, matches] = await Promise.all([listing, lookup]).finally(finish);
    const listed = new Map(page.items.map((entity) => [entity.id, entity]));
    const matched = matches.entities.map((match) => listed.get(match.entity.id) ?? match.entity);
    const unique = new Map([...matched, ...page.items].map((entity) => [entity.id, entity]));
    return { items: [...unique.values()], cursor: page.next_cursor };
  });

  /** List the entities that match the text; with a cursor, append the next page. */
  async find(cursor = null) {
    clearTimeout(this.#typingTimer);
    this.#setBusy(true);
    await reportErrors(async () => {
      const page = await this.#search(byId("find").value.trim(), cursor);
      if (!page) return;
      this.#cursor = page.cursor;
      const rows = page.items.map((entity) => this.#entityItem(entity));
      if (cursor) byId("found").append(...rows);
      else byId("found").replaceChildren(...(rows.length ? rows : [element("li", { class: "hint" }, "No matching entity.")]));
      byId("more").hidden = !page.cursor;
      this.#markCurrent();
      announce(cursor ? `${rows.length} more.` : `${pluralize(rows.length, "entity", "entities")}${page.cursor ? " and more" : ""} found.`);
    });
  }

  /** Mark the list as busy while it does not match the text: its rows may be replaced at any moment. */
  #setBusy(isBusy) {
    byId("found").setAttribute("aria-busy", String(isBusy));
  }

  #entityItem(entity) {
    return element("li", {},
      element("button", { type: "button", class: "row", "data-id": entity.id, onClick: () => this.openEntity(entity.id) },
        element("span", { class: `dot hue-${hueOf(entity.type)}`, "aria-hidden": "true" }),
        element("span", { class: "name" }, entity.name), " ", element("span", { class: "hint" }, entity.type)));
  }

  #loadEntity = latestOnly(async (signal, entityId) => {
    const path = `entities/${encodeURIComponent(entityId)}`;
    return Promise.all([
      this.#api.getUserData(path, {}, signal),
      this.#api.getUserData(`${path}/memories`, { include_superseded: true, limit: 200 }, signal),
    ]);
  });

  /** Show one entity; of several calls the last one counts, however long an earlier response takes. */
  async showEntity(entityId) {
    await reportErrors(async () => {
      const loaded = await this.#loadEntity(entityId);
      if (!loaded) return;
      const [entity, memories] = loaded;
      this.#entity = entity;
      this.valid.setChangeTimes(memories.items.flatMap((memory) => [memory.valid_at, memory.invalid_at]));
      this.known.setChangeTimes([entity.created_at, ...memories.items.flatMap((memory) => [memory.created_at, memory.expired_at])]);
      byId("entity-title").textContent = entity.name;
      const aliases = entity.aliases.filter((alias) => alias !== entity.name);
      byId("entity-about").textContent = [entity.type, aliases.length ? `also ${aliases.join(", ")}` : "", entity.summary]
        .filter(Boolean).join(" · ");
      this.#markCurrent();
      await this.refresh();
      byId("entity-title").focus();
    });
  }

  /** Show the graph as of the times of a version. */
  showAsOf(validAt, knownAt) {
    this.valid.setValue(validAt && ceilToMillisecond(validAt), true);
    this.known.setValue(knownAt && ceilToMillisecond(knownAt), true);
    return this.refresh();
  }

  #loadGraph = latestOnly((signal) => this.#api.getUserData(`entities/${encodeURIComponent(this.#entity.id)}/graph`, {
    depth: byId("depth").value, valid_as_of: this.valid.parameter, known_as_of: this.known.parameter,
  }, signal));

  /** Load and show the graph at the chosen times and depth. */
  async refresh() {
    if (!this.#entity) return;
    await reportErrors(async () => {
      const graph = await this.#loadGraph();
      if (!graph) return;
      this.#renderGraph(graph);
      const counts = `${pluralize(graph.edges.length, "memory", "memories")}, ${pluralize(graph.nodes.length, "entity", "entities")}`;
      announce(`${counts}; true in the world: ${this.valid.label.textContent}; known: ${this.known.label.textContent}.`);
    });
  }

  #renderGraph(graph) {
    this.#graph = graph;
    const connected = new Set(graph.edges.flatMap((edge) => [edge.subject.id, edge.object?.id]));
    const neighbours = graph.nodes.filter((node) => node.id !== this.#entity?.id && connected.has(node.id));
    byId("memories-title").textContent = `Memories (${graph.edges.length})`;
    byId("memories").replaceChildren(...graph.edges.map((memory) => this.#memoryItem(memory)));
    byId("neighbours-title").textContent = `Connected entities (${neighbours.length})`;
    byId("neighbours").replaceChildren(...neighbours.map((entity) => this.#neighbourItem(entity)));
    const types = [...new Set(graph.nodes.map((node) => node.type))].sort();
    byId("legend").replaceChildren(...types.map((type) => element("li", {},
      element("span", { class: `dot hue-${hueOf(type)}`, "aria-hidden": "true" }), type)));
    this.#drawGraph();
  }

  #memoryItem(memory) {
    const relation = [memory.subject.name, memory.predicate.toLowerCase().replaceAll("_", " "), memory.object?.name].filter(Boolean);
    const validity = formatInterval(memory.valid_at, memory.invalid_at, "always");
    const confidence = `confidence ${Math.round(memory.confidence * 100)} %`;
    return element("li", {},
      element("button", {
        type: "button", class: "row memory", "data-id": memory.id, "aria-haspopup": "dialog",
        onClick: () => this.openHistory(memory.id), ...this.#highlightHandlers("link", memory.id),
      },
      element("span", { class: "name" }, memory.content),
      element("span", { class: "hint" }, [relation.join(" → "), memory.type, validity, confidence].join(" · "))));
  }

  #neighbourItem(entity) {
    return element("li", {}, element("button", {
      type: "button", "data-id": entity.id, onClick: () => this.openEntity(entity.id), ...this.#highlightHandlers("node", entity.id),
    }, element("span", { class: `dot hue-${hueOf(entity.type)}`, "aria-hidden": "true" }), `${entity.name} (${entity.type})`));
  }

  #highlightHandlers(kind, id) {
    const set = (isLit) => () => highlight(byId("drawing"), kind, id, isLit);
    return { onFocus: set(true), onBlur: set(false), onMouseEnter: set(true), onMouseLeave: set(false) };
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
    const total = this.#graph.nodes.length;
    const notice = `${drawn} of ${total} entities are drawn; the lists have all of them.`;
    holder.replaceChildren(picture, ...(drawn < total ? [element("p", { class: "hint" }, notice)] : []));
  }

  #markCurrent() {
    for (const row of byId("found").querySelectorAll("button")) {
      row.toggleAttribute("aria-current", row.dataset.id === this.#entity?.id);
    }
  }
}

// Finding an entity and looking at what lies around it, at any point of both axes of time.

import { latest } from "./api.js";
import { byId, complain, counted, element, say } from "./dom.js";
import { draw, highlight, hueOf } from "./drawing.js";
import { Axis, between, reached } from "./times.js";

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
    this.go = go;
    this.valid = new Axis("valid", "True in the world", "What held at this time:", () => this.refresh());
    this.known = new Axis("known", "Known to graphmem", "What was believed at this time:", () => this.refresh());
    byId("axes").append(this.valid.node, this.known.node);
    byId("find-form").addEventListener("submit", (event) => { event.preventDefault(); this.find(); });
    byId("find").addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#busy(true);
      this.#typing = setTimeout(() => this.find(), TYPING_MS);
    });
    byId("more").addEventListener("click", () => this.find(this.#cursor));
    byId("depth").addEventListener("change", () => this.refresh());
    new ResizeObserver(() => this.#draw()).observe(byId("drawing"));
  }

  /** Begin with a reader's key, or end with null: nothing of the last reader stays. */
  serve(api) {
    this.#api = api;
    this.#entity = null;
    byId("find").value = "";
    this.#show({ nodes: [], edges: [] });
    byId("found").replaceChildren();
    this.valid.choose(null, true);
    this.known.choose(null, true);
    byId("entity-title").textContent = "No entity chosen";
    byId("entity-about").textContent = "Find one, or choose from the list.";
  }

  #search = latest(async (signal, query, cursor) => {
    const named = query && !cursor ? this.#api.ofUser("entities/lookup", { q: query, limit: 1 }, signal) : { entities: [] };
    const listing = this.#api.ofUser("entities", { query, limit: PAGE, cursor }, signal);
    const answers = () => signal.aborted || this.#busy(query !== byId("find").value.trim());
    const [listed, looked] = await Promise.all([listing, named]).finally(answers);
    const known = new Map(listed.items.map((each) => [each.id, each]));
    const first = looked.entities.map((each) => known.get(each.entity.id) ?? each.entity);
    return { items: [...new Map([...first, ...listed.items].map((each) => [each.id, each])).values()], cursor: listed.next_cursor };
  });

  /** List the entities that the text finds; with a cursor, more of them. */
  async find(cursor = null) {
    clearTimeout(this.#typing);
    this.#busy(true);
    await this.#guarded(async () => {
      const found = await this.#search(byId("find").value.trim(), cursor);
      if (!found) return;
      this.#cursor = found.cursor;
      const rows = found.items.map((each) => element("li", {},
        element("button", { type: "button", class: "row", "data-id": each.id, onClick: () => this.go(each.id) },
          element("span", { class: `dot hue-${hueOf(each.type)}`, "aria-hidden": "true" }),
          element("span", { class: "name" }, each.name), " ", element("span", { class: "hint" }, each.type))));
      if (cursor) byId("found").append(...rows);
      else byId("found").replaceChildren(...(rows.length ? rows : [element("li", { class: "hint" }, "No entity is found by this.")]));
      byId("more").hidden = !found.cursor;
      this.#mark();
      say(cursor ? `${rows.length} more.` : `${counted(rows.length, "entity", "entities")}${found.cursor ? " and more" : ""} found.`);
    });
  }

  /** While the list is busy, it does not answer what the reader has typed, and its rows may go at any moment. */
  #busy(on) {
    byId("found").setAttribute("aria-busy", String(on));
  }

  #read = latest(async (signal, entityId) => {
    const path = `entities/${encodeURIComponent(entityId)}`;
    return Promise.all([
      this.#api.ofUser(path, {}, signal),
      this.#api.ofUser(`${path}/memories`, { include_superseded: true, limit: 200 }, signal),
    ]);
  });

  /** Look at one entity: the one chosen last, however long an earlier one takes to come. */
  async choose(entityId) {
    await this.#guarded(async () => {
      const found = await this.#read(entityId);
      if (!found) return;
      const [entity, ever] = found;
      this.#entity = entity;
      this.valid.setMoments(ever.items.flatMap((each) => [each.valid_at, each.invalid_at]));
      this.known.setMoments([entity.created_at, ...ever.items.flatMap((each) => [each.created_at, each.expired_at])]);
      byId("entity-title").textContent = entity.name;
      const others = entity.aliases.filter((each) => each !== entity.name);
      byId("entity-about").textContent = [entity.type, others.length ? `also ${others.join(", ")}` : "", entity.summary]
        .filter(Boolean).join(" · ");
      this.#mark();
      await this.refresh();
      byId("entity-title").focus();
    });
  }

  /** Look at the graph as of what a version says of both axes. */
  lookBack(validAt, knownAt) {
    this.valid.choose(validAt && reached(validAt), true);
    this.known.choose(knownAt && reached(knownAt), true);
    return this.refresh();
  }

  #load = latest((signal) => this.#api.ofUser(`entities/${encodeURIComponent(this.#entity.id)}/graph`, {
    depth: byId("depth").value, valid_as_of: this.valid.parameter, known_as_of: this.known.parameter,
  }, signal));

  /** Read the graph anew at the times and the depth chosen. */
  async refresh() {
    if (!this.#entity) return;
    await this.#guarded(async () => {
      const graph = await this.#load();
      if (!graph) return;
      this.#show(graph);
      const about = `${counted(graph.edges.length, "memory", "memories")}, ${counted(graph.nodes.length, "entity", "entities")}`;
      say(`${about}; true in the world: ${this.valid.label.textContent}; known: ${this.known.label.textContent}.`);
    });
  }

  #show(graph) {
    this.#graph = graph;
    const tied = new Set([this.#entity?.id, ...graph.edges.flatMap((each) => [each.subject.id, each.object?.id])]);
    const around = graph.nodes.filter((each) => each.id !== this.#entity?.id && tied.has(each.id));
    byId("memories-title").textContent = `Memories (${graph.edges.length})`;
    byId("memories").replaceChildren(...graph.edges.map((each) => this.#memory(each)));
    byId("neighbours-title").textContent = `Entities around it (${around.length})`;
    byId("neighbours").replaceChildren(...around.map((each) => this.#neighbour(each)));
    const types = [...new Set(graph.nodes.map((each) => each.type))].sort();
    byId("legend").replaceChildren(...types.map((type) => element("li", {},
      element("span", { class: `dot hue-${hueOf(type)}`, "aria-hidden": "true" }), type)));
    this.#draw();
  }

  #memory(memory) {
    const ends = [memory.subject.name, memory.predicate.toLowerCase().replaceAll("_", " "), memory.object?.name].filter(Boolean);
    const sure = `${Math.round(memory.confidence * 100)} % sure`;
    return element("li", {},
      element("button", {
        type: "button", class: "row memory", "data-id": memory.id, "aria-haspopup": "dialog",
        onClick: () => this.openHistory(memory.id), ...this.#lights("link", memory.id),
      },
      element("span", { class: "name" }, memory.content),
      element("span", { class: "hint" }, `${ends.join(" → ")} · ${memory.type} · ${between(memory.valid_at, memory.invalid_at, "always")} · ${sure}`)));
  }

  #neighbour(entity) {
    return element("li", {}, element("button", {
      type: "button", "data-id": entity.id, onClick: () => this.go(entity.id), ...this.#lights("node", entity.id),
    }, element("span", { class: `dot hue-${hueOf(entity.type)}`, "aria-hidden": "true" }), `${entity.name} (${entity.type})`));
  }

  #lights(kind, id) {
    const lit = (on) => () => highlight(byId("drawing"), kind, id, on);
    return { onFocus: lit(true), onBlur: lit(false), onMouseEnter: lit(true), onMouseLeave: lit(false) };
  }

  #draw() {
    const holder = byId("drawing");
    const width = holder.clientWidth;
    if (!this.#entity || !width) {
      holder.replaceChildren();
      return;
    }
    const height = Math.round(Math.min(Math.max(width * 0.5, 280), 420));
    const { picture, drawn } = draw(this.#graph, this.#entity.id, width, height, this.go, this.openHistory);
    const all = this.#graph.nodes.length;
    holder.replaceChildren(picture, ...(drawn < all ? [element("p", { class: "hint" }, `${drawn} of ${all} entities are drawn; the lists have all.`)] : []));
  }

  #mark() {
    for (const row of byId("found").querySelectorAll("button")) {
      row.toggleAttribute("aria-current", row.dataset.id === this.#entity?.id);
    }
  }

  async #guarded(work) {
    try {
      await work();
      complain(null);
    } catch (error) {
      complain(error);
    }
  }
}

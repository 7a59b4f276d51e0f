// An entity and the graph around it, as of any valid time and any known time.

import { latestOnly } from "../api.js";
import { announce, card, descriptions, element, list, pluralize, reportErrors, select } from "../dom.js";
import { GraphView } from "../graph_view.js";
import { TimeAxis } from "../time_axis.js";
import { ceilToMillisecond } from "../times.js";
import { toWords } from "../wording.js";
import { entityLink, memoryItem } from "./memory_list.js";

export async function entityView(context) {
  const [entity, about] = await Promise.all([
    context.api.get(context.userPath("entities", context.id)),
    context.api.get(context.userPath("entities", context.id, "memories"), { include_superseded: true, limit: 200 }),
  ]);
  const page = new EntityPage(context, entity, about.items);
  context.setTitle(entity.name);
  await page.refresh();
}

class EntityPage {
  constructor(context, entity, memories) {
    this.context = context;
    this.entity = entity;
    this.valid = new TimeAxis("valid", "True in the world", "What was true at this time:", () => this.#onChange());
    this.known = new TimeAxis("known", "Known to graphmem", "What graphmem knew at this time:", () => this.#onChange());
    this.valid.setChangeTimes(memories.flatMap((memory) => [memory.valid_at, memory.invalid_at]));
    this.known.setChangeTimes([entity.created_at, ...memories.flatMap((memory) => [memory.created_at, memory.expired_at])]);
    this.#readAddress();
    this.depth = select({ id: "depth", onChange: () => this.#onChange() }, [["1", "1"], ["2", "2"], ["3", "3"]], context.query.get("depth") ?? "1");
    this.graph = new GraphView({
      onEntity: (id) => context.open(context.link("entities", id)), onMemory: (id) => context.open(context.link("memories", id)), signal: context.signal,
    });
    this.memories = element("div", {});
    this.neighbours = element("div", {});
    context.root.append(this.#head(), card("time", "Time axes", {}, element("div", { class: "axes" }, this.valid.node, this.known.node)),
      element("div", { class: "halves" }, card("memories", "Memories", {}, this.memories), card("neighbours", "Connected entities", {}, this.neighbours)));
  }

  #head() {
    const aliases = this.entity.aliases.filter((alias) => alias !== this.entity.name);
    const attributes = Object.entries(this.entity.attributes).map(([name, value]) => [toWords(name), typeof value === "string" ? value : JSON.stringify(value)]);
    return element("section", { class: "card", "aria-labelledby": "entity-title" },
      element("div", { class: "heading" },
        element("h1", { id: "entity-title", tabindex: "-1" }, this.entity.name),
        element("label", { class: "inline" }, "Steps", this.depth)),
      element("p", { class: "hint" }, [this.entity.type, aliases.length ? `also ${aliases.join(", ")}` : "", this.entity.summary].filter(Boolean).join(" · ")),
      this.entity.profile && this.#profile(this.entity.profile),
      attributes.length > 0 && descriptions(attributes),
      this.graph.node);
  }

  /** Return what is known of the entity, each sentence with links to the memories that say so. */
  #profile({ id, sentences }) {
    const link = (memoryId, number) => element("a", { href: this.context.link("memories", memoryId), "aria-label": `Source: memory ${number}` }, `[${number}]`);
    const numbers = new Map([...new Set(sentences.flatMap((sentence) => sentence.memory_ids))].map((memoryId, index) => [memoryId, index + 1]));
    const parts = sentences.flatMap(({ content, memory_ids: ids }) => [`${content} `, ...ids.flatMap((memoryId) => [link(memoryId, numbers.get(memoryId)), " "])]);
    return element("p", { id: "profile" }, ...parts, element("a", { class: "hint", href: this.context.link("memories", id) }, "Earlier versions"));
  }

  #readAddress() {
    const { query } = this.context;
    const read = (name) => (query.get(name) ? ceilToMillisecond(query.get(name)) : null);
    this.valid.setValue(read("valid"), true);
    this.known.setValue(read("known"), true);
  }

  #onChange() {
    this.context.keepQuery({ depth: this.depth.value === "1" ? null : this.depth.value, valid: this.valid.parameter, known: this.known.parameter });
    return reportErrors(() => this.refresh());
  }

  #load = latestOnly((signal) => this.context.api.withSignal(AbortSignal.any([signal, this.context.signal])).get(
    this.context.userPath("entities", this.entity.id, "graph"),
    { depth: this.depth.value, valid_as_of: this.valid.parameter, known_as_of: this.known.parameter },
  ));

  /** Load and show the graph at the chosen times and depth. */
  async refresh() {
    const graph = await this.#load();
    if (!graph) return;
    const connected = new Set(graph.edges.flatMap((memory) => [memory.subject.id, memory.object?.id]));
    const neighbours = graph.nodes.filter((node) => node.id !== this.entity.id && connected.has(node.id));
    this.graph.show({ nodes: graph.nodes, memories: graph.edges }, { centreId: this.entity.id });
    this.memories.replaceChildren(list({ id: "memories" }, graph.edges.map((memory) => memoryItem(this.context, memory, { attributes: this.#highlightHandlers(memory.id) })),
      "No memory at this time."));
    this.neighbours.replaceChildren(element("div", { class: "chips", id: "neighbours" }, ...neighbours.map((node) => entityLink(this.context, node, this.#highlightHandlers(node.id)))));
    const counts = `${pluralize(graph.edges.length, "memory", "memories")}, ${pluralize(graph.nodes.length, "entity", "entities")}`;
    announce(`${counts}; true in the world: ${this.valid.label.textContent}; known: ${this.known.label.textContent}.`);
  }

  #highlightHandlers(id) {
    const set = (isLit) => () => this.graph.highlight(id, isLit);
    return { onFocus: set(true), onBlur: set(false), onMouseEnter: set(true), onMouseLeave: set(false) };
  }
}

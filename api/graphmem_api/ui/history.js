// The versions of one memory: what each said, when, who said it, and why it ended.

import { byId, complain, element } from "./dom.js";
import { between, told } from "./times.js";

const PAGES = 3;

export class History {
  #api = null;
  #keys = new Map();
  #asked = 0;

  /** `onMoment(validAt, knownAt)` shows the graph as of a version. */
  constructor(onMoment) {
    this.onMoment = onMoment;
    byId("history-close").addEventListener("click", () => byId("history").close());
  }

  /** Begin with a reader's key, and with the names of keys by their id. */
  serve(api, keys) {
    this.#api = api;
    this.#keys = keys;
    byId("versions").replaceChildren();
    byId("history").close();
  }

  /** Show the versions of a memory, the oldest first. */
  async open(memoryId) {
    const asked = ++this.#asked;
    try {
      const { items } = await this.#api.ofUser(`memories/${encodeURIComponent(memoryId)}/history`);
      const said = await this.#said(items);
      if (asked !== this.#asked) return;
      byId("history-title").textContent = items.length === 1 ? "History: one version" : `History: ${items.length} versions`;
      byId("versions").replaceChildren(...items.map((each) => this.#version(each, said)));
      byId("history").showModal();
      byId("history-title").focus();
    } catch (error) {
      complain(error);
    }
  }

  #version(row, said) {
    const terms = [
      ["Who said it", this.#source(row)],
      ["True in the world", between(row.valid_at, row.invalid_at, "always")],
      ["Known to graphmem", between(row.created_at, row.expired_at, "always")],
      ["Why it ended", ended(row)],
      ["Replaced by", row.superseded_by && this.#link(row.superseded_by)],
    ];
    const quotes = row.source.message_ids.map((id) => said.get(id)).filter(Boolean);
    return element("li", { class: "version" },
      element("h3", {}, `Version ${row.version} · ${row.status}`),
      element("p", { class: "name" }, row.content),
      ...quotes.map((message) => element("figure", {},
        element("blockquote", {}, message.content),
        element("figcaption", { class: "hint" }, `${message.name ?? message.role}, ${told(message.timestamp)}`))),
      element("dl", {}, ...terms.filter(([, value]) => value).flatMap(([term, value]) => [
        element("dt", {}, term), element("dd", {}, value)])),
      element("button", { type: "button", onClick: () => this.#look(row) }, "Look back to when this was learned"));
  }

  #look(row) {
    byId("history").close();
    this.onMoment(row.valid_at, row.created_at);
  }

  #link(memoryId) {
    return element("button", { type: "button", class: "link", onClick: () => this.open(memoryId) }, "the memory that replaced it");
  }

  #source(row) {
    const actor = row.actor && `by ${this.#keys.get(row.actor) ?? row.actor}`;
    const session = row.source.session_id && `in session ${row.source.session_id}`;
    return [row.source.kind, actor, session].filter(Boolean).join(", ");
  }

  /** Return the messages that the versions rest on, by id. */
  async #said(rows) {
    const wanted = new Set(rows.flatMap((each) => each.source.message_ids));
    const sessions = new Set(rows.map((each) => each.source.message_ids.length ? each.source.session_id : null).filter(Boolean));
    const found = new Map();
    for (const session of sessions) {
      let cursor = null;
      for (let page = 0; page < PAGES && (page === 0 || cursor); page += 1) {
        const answer = await this.#api.ofUser(`sessions/${encodeURIComponent(session)}/messages`, { limit: 200, cursor }).catch(() => null);
        for (const message of answer?.items ?? []) if (wanted.has(message.id)) found.set(message.id, message);
        cursor = answer?.next_cursor;
      }
    }
    return found;
  }
}

function ended(row) {
  if (!row.ended_reason) return null;
  return row.ended_by ? `${row.ended_reason} (${row.ended_by})` : row.ended_reason;
}

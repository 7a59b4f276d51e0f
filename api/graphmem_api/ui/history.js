// The versions of one memory: what each said, when, who said it, and why it ended.

import { byId, showError, element } from "./dom.js";
import { formatInterval, formatTime } from "./time_axis.js";

const MAX_PAGES = 3;

export class HistoryDialog {
  #api = null;
  #keyNames = new Map();
  #requestNumber = 0;

  /** `onShowAsOf(validAt, knownAt)` shows the graph as of a version. */
  constructor(onShowAsOf) {
    this.onShowAsOf = onShowAsOf;
    byId("history-close").addEventListener("click", () => byId("history").close());
  }

  /** Begin with a reader's key, and with the names of keys by their id. */
  setSession(api, keys) {
    this.#api = api;
    this.#keyNames = keys;
    byId("versions").replaceChildren();
    byId("history").close();
  }

  /** Show the versions of a memory, the oldest first. */
  async open(memoryId) {
    const asked = ++this.#requestNumber;
    try {
      const { items } = await this.#api.getUserData(`memories/${encodeURIComponent(memoryId)}/history`);
      const messages = await this.#loadSourceMessages(items);
      if (asked !== this.#requestNumber) return;
      byId("history-title").textContent = items.length === 1 ? "History: one version" : `History: ${items.length} versions`;
      byId("versions").replaceChildren(...items.map((each) => this.#versionItem(each, messages)));
      byId("history").showModal();
      byId("history-title").focus();
    } catch (error) {
      showError(error);
    }
  }

  #versionItem(row, messages) {
    const terms = [
      ["Who said it", this.#sourceText(row)],
      ["True in the world", formatInterval(row.valid_at, row.invalid_at, "always")],
      ["Known to graphmem", formatInterval(row.created_at, row.expired_at, "always")],
      ["Why it ended", endReason(row)],
      ["Replaced by", row.superseded_by && this.#replacementLink(row.superseded_by)],
    ];
    const quotes = row.source.message_ids.map((id) => messages.get(id)).filter(Boolean);
    return element("li", { class: "version" },
      element("h3", {}, `Version ${row.version} · ${row.status}`),
      element("p", { class: "name" }, row.content),
      ...quotes.map((message) => element("figure", {},
        element("blockquote", {}, message.content),
        element("figcaption", { class: "hint" }, `${message.name ?? message.role}, ${formatTime(message.timestamp)}`))),
      element("dl", {}, ...terms.filter(([, value]) => value).flatMap(([term, value]) => [
        element("dt", {}, term), element("dd", {}, value)])),
      element("button", { type: "button", onClick: () => this.#showAsOf(row) }, "Look back to when this was learned"));
  }

  #showAsOf(row) {
    byId("history").close();
    this.onShowAsOf(row.valid_at, row.created_at);
  }

  #replacementLink(memoryId) {
    return element("button", { type: "button", class: "link", onClick: () => this.open(memoryId) }, "the memory that replaced it");
  }

  #sourceText(row) {
    const actor = row.actor && `by ${this.#keyNames.get(row.actor) ?? row.actor}`;
    const session = row.source.session_id && `in session ${row.source.session_id}`;
    return [row.source.kind, actor, session].filter(Boolean).join(", ");
  }

  /** Return the messages that the versions rest on, by id. */
  async #loadSourceMessages(rows) {
    const wanted = new Set(rows.flatMap((each) => each.source.message_ids));
    const sessions = new Set(rows.map((each) => each.source.message_ids.length ? each.source.session_id : null).filter(Boolean));
    const found = new Map();
    for (const session of sessions) {
      let cursor = null;
      for (let page = 0; page < MAX_PAGES && (page === 0 || cursor); page += 1) {
        const answer = await this.#api.getUserData(`sessions/${encodeURIComponent(session)}/messages`, { limit: 200, cursor }).catch(() => null);
        for (const message of answer?.items ?? []) if (wanted.has(message.id)) found.set(message.id, message);
        cursor = answer?.next_cursor;
      }
    }
    return found;
  }
}

function endReason(row) {
  if (!row.ended_reason) return null;
  return row.ended_by ? `${row.ended_reason} (${row.ended_by})` : row.ended_reason;
}

// The dialog with all versions of a memory: content, times, source, and why each ended.

import { byId, element, pluralize, showError } from "./dom.js";
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

  /** Start a session, or with null end it; `keyNames` maps key ids to names. */
  setSession(api, keyNames) {
    this.#api = api;
    this.#keyNames = keyNames;
    byId("versions").replaceChildren();
    byId("history").close();
  }

  /** Show the versions of a memory, oldest first. */
  async open(memoryId) {
    const request = ++this.#requestNumber;
    try {
      const { items } = await this.#api.getUserData(`memories/${encodeURIComponent(memoryId)}/history`);
      const messages = await this.#loadSourceMessages(items);
      if (request !== this.#requestNumber) return;
      byId("history-title").textContent = `History: ${pluralize(items.length, "version")}`;
      byId("versions").replaceChildren(...items.map((version) => this.#versionItem(version, messages)));
      byId("history").showModal();
      byId("history-title").focus();
    } catch (error) {
      showError(error);
    }
  }

  #versionItem(version, messages) {
    const terms = [
      ["Source", this.#sourceText(version)],
      ["True in the world", formatInterval(version.valid_at, version.invalid_at, "always")],
      ["Known to graphmem", formatInterval(version.created_at, version.expired_at, "always")],
      ["Why it ended", endReason(version)],
      ["Replaced by", version.superseded_by && this.#replacementLink(version.superseded_by)],
    ];
    const quotes = version.source.message_ids.map((id) => messages.get(id)).filter(Boolean);
    return element("li", { class: "version" },
      element("h3", {}, `Version ${version.version} · ${stateOf(version)}`),
      element("p", { class: "name" }, version.content),
      ...quotes.map((message) => element("figure", {},
        element("blockquote", {}, message.content),
        element("figcaption", { class: "hint" }, `${message.name ?? message.role}, ${formatTime(message.timestamp)}`))),
      element("dl", {}, ...terms.filter(([, value]) => value).flatMap(([term, value]) => [
        element("dt", {}, term), element("dd", {}, value)])),
      element("button", { type: "button", onClick: () => this.#showAsOf(version) }, "Show the graph when this was learned"));
  }

  #showAsOf(version) {
    byId("history").close();
    this.onShowAsOf(version.valid_at, version.created_at);
  }

  #replacementLink(memoryId) {
    return element("button", { type: "button", class: "link", onClick: () => this.open(memoryId) }, "the memory that replaced it");
  }

  #sourceText(version) {
    const actor = version.actor && `by ${this.#keyNames.get(version.actor) ?? version.actor}`;
    const session = version.source.session_id && `in session ${version.source.session_id}`;
    return [version.source.kind, actor, session].filter(Boolean).join(", ");
  }

  /** Return the messages that are sources of the versions, by id. */
  async #loadSourceMessages(versions) {
    const messageIds = new Set(versions.flatMap((version) => version.source.message_ids));
    const withMessages = versions.filter((version) => version.source.message_ids.length);
    const sessionIds = new Set(withMessages.map((version) => version.source.session_id).filter(Boolean));
    const messages = new Map();
    for (const sessionId of sessionIds) {
      let cursor = null;
      for (let page = 0; page < MAX_PAGES && (page === 0 || cursor); page += 1) {
        const path = `sessions/${encodeURIComponent(sessionId)}/messages`;
        const response = await this.#api.getUserData(path, { limit: 200, cursor }).catch(() => null);
        for (const message of response?.items ?? []) if (messageIds.has(message.id)) messages.set(message.id, message);
        cursor = response?.next_cursor;
      }
    }
    return messages;
  }
}

/** Return what has become of a version: a version that was replaced is never called active. */
function stateOf(version) {
  if (version.status === "deleted") return "deleted";
  if (version.superseded_by || version.ended_reason || version.expired_at) return "replaced";
  return version.status === "active" ? "current" : version.status;
}

function endReason(version) {
  if (!version.ended_reason) return null;
  const reason = version.ended_reason === "superseded" ? "replaced by another memory" : version.ended_reason;
  return version.ended_by && version.ended_by !== version.superseded_by ? `${reason} (${version.ended_by})` : reason;
}

// A list that grows by pages. The number of rows is kept with the address, so that back and forward find the same place.

import { announce, element, list, pluralize, reportErrors } from "./dom.js";

export class PagedList {
  #cursor = null;
  #wanted;
  #isAppending = false;

  /**
   * `load(cursor)` returns a page, or null when a later call has replaced it; `nouns` are singular and plural; `emptyText()`
   * is shown when there are no rows.
   */
  constructor(context, { id, load, toItem, emptyText, nouns, onCount = () => {}, attributes = {} }) {
    Object.assign(this, { context, load, toItem, emptyText, nouns, onCount });
    this.#wanted = context.shownRows;
    this.rows = list({ id, ...attributes }, [], "");
    this.more = element("button", { type: "button", class: "more", hidden: true, onClick: () => reportErrors(() => this.#append()) }, "More");
    this.node = element("div", {}, this.rows, this.more);
  }

  /** Show the list from its beginning; the first time as many rows as when its view was left. */
  async fill() {
    const wanted = this.#wanted;
    this.#wanted = 0;
    const items = [];
    let cursor = null;
    do {
      const page = await this.load(cursor);
      if (!page || this.context.signal.aborted) return;
      items.push(...page.items.map(this.toItem));
      cursor = page.next_cursor;
    } while (cursor && items.length < wanted);
    this.rows.replaceChildren(...(items.length ? items : [element("li", { class: "hint" }, this.emptyText())]));
    this.#finish(cursor, items.length);
  }

  /** Show the next page. Whoever pressed the button goes on from the first new row, also by keyboard. */
  async #append() {
    if (this.#isAppending) return;
    this.#isAppending = true;
    const isFocused = document.activeElement === this.more;
    try {
      const page = await this.load(this.#cursor);
      if (!page || this.context.signal.aborted) return;
      const added = page.items.map(this.toItem);
      this.rows.append(...added);
      this.#finish(page.next_cursor, this.rows.children.length);
      if (isFocused) added[0]?.querySelector("a, button")?.focus({ preventScroll: true });
    } finally {
      this.#isAppending = false;
    }
  }

  #finish(cursor, count) {
    this.#cursor = cursor;
    this.more.hidden = !cursor;
    this.context.rememberRows(count);
    const text = `${cursor ? "The first " : ""}${pluralize(count, ...this.nouns)}`;
    this.onCount(text);
    announce(`${text}.`);
  }
}

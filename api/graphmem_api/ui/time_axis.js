// One time axis: a slider, a date input, and buttons for the changes before and after. Times are in the viewer's time zone.

import { element } from "./dom.js";
import { ceilToMillisecond, formatTime, readLocalText, toLocalText } from "./times.js";

const SECOND = 1000;
const UNITS = [SECOND, 60 * SECOND, 3600 * SECOND, 86400 * SECOND];
const MAX_STEPS = 2000;
const DEBOUNCE_MS = 120;

export class TimeAxis {
  /** The chosen time; null is now. */
  value = null;

  #changeTimes = [];
  #start = 0;
  #unit = SECOND;
  #endsNow = true;
  #debounceTimer = null;

  /** `onChange` is called when the user has chosen another time. */
  constructor(name, title, hint, onChange) {
    this.onChange = onChange;
    this.slider = element("input", {
      type: "range", id: `${name}-slider`, min: 0, max: 1, value: 1, "aria-label": `${title}, slider`,
      onInput: () => this.#readSlider(),
    });
    this.date = element("input", {
      type: "datetime-local", id: `${name}-date`, step: 1, "aria-label": `${title}, date and time`, "aria-describedby": `${name}-hint`, onChange: () => this.#readDateInput(),
    });
    this.label = element("output", { for: `${name}-slider ${name}-date`, id: `${name}-value` }, "now");
    this.earlierButton = element("button", { type: "button", "aria-label": "Earlier change", onClick: () => this.#goToChange(-1) }, "◂ Earlier");
    this.laterButton = element("button", { type: "button", "aria-label": "Later change", onClick: () => this.#goToChange(1) }, "Later ▸");
    this.nowButton = element("button", { type: "button", id: `${name}-now`, onClick: () => this.setValue(null) }, "Now");
    this.node = element("fieldset", { class: "axis" },
      element("legend", {}, title),
      element("p", { class: "hint" }, element("span", { id: `${name}-hint` }, hint), " ", this.label),
      this.slider,
      element("div", { class: "buttons" }, this.earlierButton, this.nowButton, this.laterButton, this.date));
    this.setChangeTimes([]);
  }

  /** Set the times at which something changes; the slider covers them and now. */
  setChangeTimes(times) {
    const now = Date.now();
    this.#changeTimes = [...new Set(times.filter(Boolean).map((time) => ceilToMillisecond(time).getTime()))].sort((a, b) => a - b);
    const first = Math.min(now - SECOND, ...this.#changeTimes);
    const last = Math.max(now, ...this.#changeTimes);
    const span = last - first;
    this.#unit = UNITS.find((unit) => span / unit <= MAX_STEPS) ?? UNITS.at(-1);
    this.#start = Math.floor((first - Math.max(this.#unit, span / 20)) / this.#unit) * this.#unit;
    this.#endsNow = last <= now;
    this.slider.max = Math.ceil((last - this.#start) / this.#unit);
    this.#render();
  }

  /** Choose a time; null is now. With `silent`, `onChange` is not called. */
  setValue(value, silent = false) {
    this.value = value;
    this.#render();
    if (!silent) this.onChange();
  }

  /** The time as a query parameter. */
  get parameter() {
    return this.value?.toISOString() ?? null;
  }

  #readSlider() {
    const position = Number(this.slider.value);
    const isLast = position === Number(this.slider.max);
    this.value = isLast && this.#endsNow ? null : new Date(this.#start + position * this.#unit);
    this.#render(true);
    clearTimeout(this.#debounceTimer);
    this.#debounceTimer = setTimeout(() => this.onChange(), DEBOUNCE_MS);
  }

  #readDateInput() {
    this.setValue(readLocalText(this.date.value));
  }

  #goToChange(direction) {
    const current = this.value?.getTime() ?? Date.now();
    const target = direction < 0 ? this.#changeTimes.findLast((time) => time < current) : this.#changeTimes.find((time) => time > current);
    if (target !== undefined) this.setValue(new Date(target));
    else if (direction < 0 && this.#changeTimes.length) this.setValue(new Date(this.#start));
    else if (direction > 0) this.setValue(null);
  }

  #render(isSliding = false) {
    const text = this.value === null ? "now" : formatTime(this.value);
    this.label.textContent = text;
    const time = this.value?.getTime() ?? (this.#endsNow ? Infinity : Date.now());
    if (!isSliding) this.slider.value = Math.min(Math.round((time - this.#start) / this.#unit), Number(this.slider.max));
    this.slider.setAttribute("aria-valuetext", text);
    this.date.value = this.value === null ? "" : toLocalText(this.value);
    this.nowButton.disabled = this.value === null;
  }
}

// One time axis: a slider, a date input, and buttons for the changes before and after. Times are in the viewer's time zone.

import { element } from "./dom.js";

const SECOND = 1000;
const UNITS = [SECOND, 60 * SECOND, 3600 * SECOND, 86400 * SECOND];
const MAX_STEPS = 2000;
const DEBOUNCE_MS = 120;

/** The viewer's time zone, such as Europe/Berlin. */
export const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Return a time in the viewer's zone like `2026-06-01 12:00`, without the time of day at midnight. */
export function formatTime(time) {
  const [day, clock] = toLocalText(new Date(time)).split("T");
  if (clock.startsWith("00:00:00")) return day;
  return `${day} ${clock.endsWith(":00") ? clock.slice(0, 5) : clock}`;
}

/** Return a time in the viewer's zone as a `datetime-local` input reads it, in seconds. */
function toLocalText(time) {
  const twoDigits = (number) => String(number).padStart(2, "0");
  const day = [String(time.getFullYear()).padStart(4, "0"), twoDigits(time.getMonth() + 1), twoDigits(time.getDate())].join("-");
  return `${day}T${[time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(":")}`;
}

/** Return an interval as text; null ends are open, and `unbounded` is the text for two of them. */
export function formatInterval(start, end, unbounded) {
  if (start === null && end === null) return unbounded;
  if (end === null) return `from ${formatTime(start)} on`;
  return start === null ? `until ${formatTime(end)}` : `${formatTime(start)} to ${formatTime(end)}`;
}

/** Return a time rounded up to milliseconds, the precision of JavaScript. */
export const ceilToMillisecond = (time) => new Date(new Date(time).getTime() + (/\.\d{3}0*(Z|[+-])/.test(time) || !/\./.test(time) ? 0 : 1));

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
    const chosen = new Date(this.date.value);
    this.setValue(Number.isNaN(chosen.getTime()) ? null : chosen);
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

// The strength of a memory over time: it fades since the last retrieval, and the next retrieval raises it.

import { element, svgElement } from "./dom.js";
import { formatDay } from "./times.js";
import { percent } from "./wording.js";

const WIDTH = 420;
const HEIGHT = 110;
const MARGIN = { left: 40, right: 16, top: 10, bottom: 24 };
const DAY_MS = 86_400_000;
const AHEAD_DAYS = 180;
const POINTS = 40;

/** Return a drawing of the strength from the last retrieval, or the first version, to half a year ahead. */
export function drawStrength(memory, firstKnown) {
  const now = Date.now();
  const start = new Date(memory.last_accessed_at ?? firstKnown).getTime();
  const end = now + AHEAD_DAYS * DAY_MS;
  const strengthAt = (time) => Math.min(1, memory.strength * Math.exp((-memory.decay_rate * (time - now)) / DAY_MS));
  const x = (time) => MARGIN.left + ((time - start) / (end - start)) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (strength) => HEIGHT - MARGIN.bottom - strength * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const times = Array.from({ length: POINTS + 1 }, (_, index) => start + ((end - start) * index) / POINTS);
  const later = strengthAt(end);
  const retrieved = memory.access_count ? `Retrieved ${memory.access_count} times, last on ${formatDay(start)}.` : "Never retrieved.";
  const text = `${retrieved} ${percent(memory.strength)} now; without a retrieval ${percent(later)} on ${formatDay(end)}.`;
  return element("div", {},
    svgElement("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "strength", role: "img", "aria-label": `Strength over time. ${text}` },
      ...[0, 0.5, 1].flatMap((strength) => [
        svgElement("line", { class: "tick", x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: y(strength), y2: y(strength) }),
        svgElement("text", { class: "mark", x: MARGIN.left - 6, y: y(strength) + 4, "text-anchor": "end" }, percent(strength)),
      ]),
      svgElement("polyline", { class: "curve", points: times.map((time) => `${x(time).toFixed(1)},${y(strengthAt(time)).toFixed(1)}`).join(" ") }),
      svgElement("circle", { class: "today", cx: x(now), cy: y(memory.strength), r: 4.5 }),
      svgElement("text", { class: "mark", x: x(now), y: HEIGHT - 6, "text-anchor": now - start < 20 * DAY_MS ? "start" : "middle" }, "today"),
      svgElement("text", { class: "mark", x: x(end), y: HEIGHT - 6, "text-anchor": "end" }, formatDay(end))),
    element("p", { class: "hint" }, text));
}

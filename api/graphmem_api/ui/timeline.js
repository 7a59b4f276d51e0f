// Versions of memories as areas: valid time to the right, known time upwards. Each change is one step on its axis.

import { element, svgElement } from "./dom.js";
import { formatDay, formatInterval, formatTime } from "./times.js";
import { stateOf, truncate } from "./wording.js";

const WIDTH = 760;
const MARGIN = { left: 128, right: 12, top: 10, bottom: 44 };
const MIN_ROW = 34;
const CHARACTER_WIDTH = 6.6;
const COLOURS = 12;
const BEFORE = -Infinity;
const AFTER = Infinity;

/** Return a drawing of histories, lists of versions, and the same as a table; the one of `mainId` is marked. */
export function drawTimeline(histories, mainId) {
  const areas = histories.flatMap((versions, index) => versions.map((version) => ({
    version, hue: index % COLOURS, isMain: version.id === mainId,
    valid: [toNumber(version.valid_at, BEFORE), toNumber(version.invalid_at, AFTER)],
    known: [toNumber(version.created_at, BEFORE), toNumber(version.expired_at, AFTER)],
  }))).filter(({ valid, known }) => valid[0] < valid[1] && known[0] < known[1]);
  const validTimes = axisTimes(areas.map((area) => area.valid));
  const knownTimes = axisTimes(areas.map((area) => area.known));
  const rows = Math.max(1, knownTimes.length);
  const height = Math.min(520, Math.max(130, rows * MIN_ROW + MARGIN.top + MARGIN.bottom));
  const x = scale(validTimes, MARGIN.left, WIDTH - MARGIN.right, areas.some((area) => area.valid[0] === BEFORE));
  const y = scale(knownTimes, height - MARGIN.bottom, MARGIN.top, false);
  const picture = svgElement("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "timeline", role: "img", "aria-label": "Versions on two time axes; the table below has the same." },
    ...validTicks(validTimes, x, height), ...knownTicks(knownTimes, y), ...areas.map((area) => areaElement(area, x, y)));
  return element("div", {}, element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Timeline" }, picture),
    element("details", {}, element("summary", {}, "As a table"), table(areas)));
}

const toNumber = (time, otherwise) => (time ? new Date(time).getTime() : otherwise);

const axisTimes = (intervals) => [...new Set(intervals.flat())].filter(Number.isFinite).sort((a, b) => a - b);

/** Return a function from a time to a coordinate: times are steps of the same length, after an open start if there is one. */
function scale(times, start, end, isOpen) {
  const first = isOpen ? 1 : 0;
  const step = (end - start) / (times.length + first);
  return (time) => {
    if (time === BEFORE) return start;
    return time === AFTER ? end : start + step * (times.indexOf(time) + first);
  };
}

function areaElement({ version, hue, isMain, valid, known }, x, y) {
  const [left, right, bottom, top] = [x(valid[0]), x(valid[1]), y(known[0]), y(known[1])];
  const room = Math.floor((right - left - 12) / CHARACTER_WIDTH);
  const isStanding = known[1] === AFTER;
  return svgElement("g", { class: `area hue-${hue}${isMain ? " main" : ""}${isStanding ? "" : " past"}` },
    svgElement("title", {}, [version.content, `version ${version.version}, ${stateOf(version)}`, `true ${formatInterval(version.valid_at, version.invalid_at)}`,
      `known ${formatInterval(version.created_at, version.expired_at)}`].join("\n")),
    svgElement("rect", { x: left + 1, y: top + 1, width: Math.max(2, right - left - 2), height: Math.max(2, bottom - top - 2), rx: 5 }),
    room > 4 && svgElement("text", { x: left + 8, y: (top + bottom) / 2 + 4 }, truncate(version.content, room)));
}

function validTicks(times, x, height) {
  const space = times.length > 1 ? x(times[1]) - x(times[0]) : WIDTH;
  const days = times.map(formatDay);
  const sharesDay = days.map((day, index) => days.indexOf(day) !== index || days.lastIndexOf(day) !== index);
  const every = Math.ceil((sharesDay.includes(true) ? 118 : 78) / space);
  return times.flatMap((time, index) => [
    svgElement("line", { class: "tick", x1: x(time), x2: x(time), y1: MARGIN.top, y2: height - MARGIN.bottom + 5 }),
    index % every === 0 && svgElement("text", { class: "mark", x: x(time), y: height - MARGIN.bottom + 19, "text-anchor": "middle" }, sharesDay[index] ? formatTime(time) : days[index]),
  ]).concat(svgElement("text", { class: "axis-name", x: WIDTH - MARGIN.right, y: height - 6, "text-anchor": "end" }, "true in the world →")).filter(Boolean);
}

function knownTicks(times, y) {
  const space = times.length > 1 ? Math.abs(y(times[1]) - y(times[0])) : 100;
  const every = Math.ceil(15 / space);
  return times.flatMap((time, index) => [
    svgElement("line", { class: "tick", x1: MARGIN.left - 5, x2: WIDTH - MARGIN.right, y1: y(time), y2: y(time) }),
    index % every === 0 && svgElement("text", { class: "mark", x: MARGIN.left - 8, y: y(time) + 4, "text-anchor": "end" }, formatTime(time)),
  ]).concat(svgElement("text", { class: "axis-name", x: 4, y: 16 }, "↑ known")).filter(Boolean);
}

function table(areas) {
  const columns = ["Statement", "Version", "State", "True in the world", "Known to graphmem"];
  return element("table", { class: "wide" },
    element("thead", {}, element("tr", {}, ...columns.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...areas.map(({ version }) => element("tr", {}, ...[
      version.content, String(version.version), stateOf(version), formatInterval(version.valid_at, version.invalid_at),
      formatInterval(version.created_at, version.expired_at),
    ].map((text, index) => element("td", { "data-label": columns[index] }, text))))));
}

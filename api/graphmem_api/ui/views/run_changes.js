// The elements that a run changed, field by field.

import { element } from "../dom.js";
import { formatTime } from "../times.js";
import { badge, toWords } from "../wording.js";

const INTERNAL_FIELDS = new Set([
  "active_hash", "content_hash", "group_id", "group_key", "search_text", "alias_keys", "alias_text", "name_key", "labels",
  "valid_from", "valid_to", "known_from", "known_to", "memory_id", "uuid", "from", "to", "created_by", "ended_by", "actor",
]);
const KINDS = { fact: "Memory", entity: "Entity", episode: "Message", mention: "Mention" };
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;

/** Return whether a change is one that people care about: mentions only repeat what memories say. */
export const isShownChange = (change) => change.kind !== "mention";

/** Return a change with the fields that differ; `names` are used for the ids in them. */
export function changeItem(change, names) {
  const { before, after } = change;
  const outcome = before === null ? "added" : after === null ? "removed" : "changed";
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort()
    .filter((name) => !INTERNAL_FIELDS.has(name) && JSON.stringify(before?.[name] ?? null) !== JSON.stringify(after?.[name] ?? null));
  return element("li", {},
    element("details", { open: outcome === "changed" },
      element("summary", {}, badge(outcome), ` ${titleOf(change)}`),
      element("table", {},
        element("thead", {}, element("tr", {}, ...["Field", "Before", "After"].map((text) => element("th", { scope: "col" }, text)))),
        element("tbody", {}, ...fields.map((name) => element("tr", {},
          element("th", { scope: "row" }, toWords(name)),
          element("td", { class: "before", "data-label": "Before" }, formatValue(before?.[name], names)),
          element("td", { class: "after", "data-label": "After" }, formatValue(after?.[name], names))))))));
}

/** Return what a changed element is, with its statement or name. */
export function titleOf({ kind, before, after }) {
  const image = { ...before, ...after };
  const version = image.version ? `, version ${image.version}` : "";
  const text = kind === "fact" ? image.fact : image.name ?? image.content;
  return `${KINDS[kind] ?? kind}${version}${text ? `: ${text}` : ""}`;
}

function formatValue(value, names) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return value.map((item) => formatValue(item, names)).join(", ") || "–";
  if (typeof value !== "string") return JSON.stringify(value);
  if (names.has(value)) return names.get(value);
  return TIME.test(value) ? formatTime(value) : value;
}

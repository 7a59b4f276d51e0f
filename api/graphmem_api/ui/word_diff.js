// What changed between two texts, word by word.

import { element } from "./dom.js";

const MAX_WORDS = 400;

/** Return the later text with removed words in `<del>` and added words in `<ins>`. */
export function diffElement(before, after) {
  return element("span", { class: "name diff" }, ...diffWords(before, after).map(([kind, text]) => (kind === "same" ? text : element(kind, {}, text))));
}

/** Return `[kind, text]` parts, whose kinds are `same`, `del` and `ins`. */
export function diffWords(before, after) {
  const [old, now] = [before, after].map((text) => text.match(/\s+|[^\s]+/g) ?? []);
  if (old.length > MAX_WORDS || now.length > MAX_WORDS) return [["del", before], ["ins", after]];
  const common = commonLengths(old, now);
  const parts = [];
  const push = (kind, word) => {
    if (parts.at(-1)?.[0] === kind) parts.at(-1)[1] += word;
    else parts.push([kind, word]);
  };
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      push("same", now[j]);
      i += 1;
      j += 1;
    } else if (j >= now.length || (i < old.length && common[i + 1][j] >= common[i][j + 1])) push("del", old[i++]);
    else push("ins", now[j++]);
  }
  return parts;
}

/** Return, for each pair of positions, the length of the longest common sequence of words from there on. */
function commonLengths(old, now) {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = old[i] === now[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
}

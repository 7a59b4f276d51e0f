// Building elements. Whatever comes from memories becomes text nodes and attributes of ours, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Return an element; `given` holds attributes, and listeners under `on<Event>`; children are elements or text. */
export function element(tag, given = {}, ...children) {
  return applyAttributes(document.createElement(tag), given, children);
}

/** Return an SVG element. */
export function svgElement(tag, given = {}, ...children) {
  return applyAttributes(document.createElementNS(SVG, tag), given, children);
}

function applyAttributes(made, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2).toLowerCase(), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Return a number with its noun. */
export const pluralize = (number, one, several = `${one}s`) => `${number} ${number === 1 ? one : several}`;

/** Say something politely, for eyes and for screen readers. */
export function announce(text) {
  byId("status").textContent = text;
}

/** Show what went wrong, or with null that nothing is wrong any more. */
export function showError(error) {
  const place = byId("problem");
  place.hidden = error === null;
  place.textContent = error === null ? "" : error.message;
}

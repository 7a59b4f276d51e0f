// Building elements, and messages to the user. Text from memories becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Return an element with attributes, listeners (named `on<Event>`) and children, which are elements or text. */
export function element(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function svgElement(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2).toLowerCase(), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Return a number with its noun. */
export const pluralize = (number, singular, plural = `${singular}s`) => `${number} ${number === 1 ? singular : plural}`;

/** Show a status message, which screen readers announce. */
export function announce(text) {
  byId("status").textContent = text;
}

/** Show an error, or with null hide the last one. */
export function showError(error) {
  const notice = byId("problem");
  notice.hidden = error === null;
  notice.textContent = error === null ? "" : error.message;
}

/** Run an async function and show its error; on success hide the last error. */
export async function reportErrors(work) {
  try {
    await work();
    showError(null);
  } catch (error) {
    showError(error);
  }
}

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
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Return a card with a heading of a level, which its `aria-labelledby` names. */
export function card(id, title, { level = 2, ...attributes } = {}, ...children) {
  return element("section", { class: "card", "aria-labelledby": `${id}-title`, ...attributes },
    element(`h${level}`, { id: `${id}-title`, tabindex: "-1" }, title), ...children);
}

/** Return an input with its label. */
export function field(label, input) {
  return element("label", { class: "field" }, element("span", {}, label), input);
}

/** Return a list of items, or a hint when there are none. */
export function list(attributes, items, emptyText) {
  const content = items.length ? items : [element("li", { class: "hint" }, emptyText)];
  return element("ul", { ...attributes, class: `plain ${attributes.class ?? ""}` }, ...content);
}

/** Return a select whose options are `[value, text]`. */
export function select(attributes, options, value) {
  return element("select", attributes, ...options.map(([key, text]) => element("option", { value: key, selected: key === (value ?? "") }, text)));
}

/** Return terms with their descriptions; those without a value are left out. */
export function descriptions(terms) {
  return element("dl", {}, ...terms.filter(([, value]) => value)
    .flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

/** Return a number with its noun. */
export const pluralize = (number, singular, plural = `${singular}s`) => `${number} ${number === 1 ? singular : plural}`;

/** Show a status message, which screen readers announce. */
export function announce(text) {
  byId("status").textContent = text;
}

/** Show an error, or with null hide the last one. */
export function showError(error) {
  if (error?.name === "AbortError") return;
  const notice = byId("problem");
  notice.hidden = error === null;
  notice.textContent = error === null ? "" : [error.message, ...(error.errors ?? []).map(fieldError)].join(" ");
}

function fieldError({ loc, msg }) {
  return loc?.length ? `${loc.at(-1)}: ${msg}.` : msg;
}

/**
 * Hide the last error, run an async function and show its error. Return whether it succeeded.
 *
 * The last error is hidden first: work that ends later must not hide an error of what began after it.
 */
export async function reportErrors(work) {
  showError(null);
  try {
    await work();
    return true;
  } catch (error) {
    showError(error);
    return false;
  }
}

/** Ask in a dialog and return whether the user confirmed; `required` is a text that must be typed. */
export function confirmInDialog({ title, body, confirmText, required = null, isDangerous = true }) {
  return new Promise((resolve) => {
    const yes = element("button", {
      type: "submit", id: "confirm-yes", class: isDangerous ? "danger" : "main", disabled: Boolean(required),
    }, confirmText);
    const typed = required && element("input", {
      type: "text", id: "confirm-typed", autocomplete: "off", spellcheck: "false",
      onInput: () => { yes.disabled = typed.value !== required; },
    });
    const no = element("button", { type: "button", id: "confirm-no", onClick: () => dialog.close() }, "Cancel");
    const dialog = element("dialog", { id: "confirm", "aria-labelledby": "confirm-title", onClose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      element("form", { onSubmit: (event) => { event.preventDefault(); dialog.close("yes"); } },
        element("h2", { id: "confirm-title" }, title), ...body,
        typed && field(`Type ${required} to confirm`, typed),
        element("div", { class: "buttons" }, no, yes)));
    document.body.append(dialog);
    dialog.showModal();
    (typed ?? no).focus();
  });
}

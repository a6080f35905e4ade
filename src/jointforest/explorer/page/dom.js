/** Makes elements. What comes from a table is only ever set as text or as an attribute. */

/**
 * An HTML element. Attributes whose names begin with "on" are listeners; null and false are left out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node|string)} children
 */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element; arguments as of `el`. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** A button that shows a picture and is called `name`. */
export function iconButton(name, path, onclick, attributes = {}) {
  const picture = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: path }));
  return el(
    "button",
    { type: "button", class: "icon", "aria-label": name, title: name, onclick, ...attributes },
    picture,
  );
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A name that may go on in the next line after a "_", ".", "/" or "-": what `el` takes as children. */
export const breakable = (name) =>
  (name.match(/[^_./-]*[_./-]+|[^_./-]+/g) ?? []).flatMap((part, k) => (k ? [document.createElement("wbr"), part] : part));

/** The name of a column or level as it is shown: an empty one as quotes. */
export const named = (name) => name || "“”";

/** Set the text of a node if it differs, so that nothing is laid out anew for nothing. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Set an attribute of a node if it differs. */
export function mark(node, name, value) {
  const text = String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/** The element that has the focus in the tree that a node is in: that of the page, or one of its own. */
export const focusedNear = (node) => node.getRootNode().activeElement ?? null;

/** Name a custom element, unless another copy of these scripts in the same page has. */
export function define(name, kind) {
  if (!customElements.get(name)) customElements.define(name, kind);
}

let last = 0;
/** An id that no other element has. */
export function freshId(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}

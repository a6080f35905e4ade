/** A page inside a cell of a notebook (anywidget), in a tree of its own: neither style reaches the other. */
import { NOWHERE } from "./address.js";
import { el } from "./dom.js";
import { text as STYLE } from "./style.css";
import { text as INSIDE } from "./widget.css";
import { WidgetSource } from "./widget_source.js";

const ALONE =
  "No Python answers here: no kernel runs, or it is busy. This is the joint as a picture; run the cell, and it is live.";

/**
 * The module that anywidget wants.
 * @param {(root: HTMLElement, source: object, address: object) => {close: Function}} start - fills a node with the page
 * @param {string} [style] - rules on top of those of all pages
 */
export function widget(start, style = "") {
  return { render: (where) => render(where, start, style) };
}

function render({ model, el: cell }, start, more) {
  const host = document.createElement("div");
  host.dataset.lmSuppressShortcuts = "true"; // JupyterLab: letters typed here are not commands
  for (const kind of ["keydown", "keypress", "keyup"]) host.addEventListener(kind, (event) => event.stopPropagation());
  const tree = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = STYLE + INSIDE + more;
  const page = document.createElement("div");
  page.className = "page";
  tree.append(style, page);
  cell.append(host);
  const watcher = followTheme(host);
  const source = new WidgetSource(model);
  const picture = still(model);
  cell.append(picture);
  source.silent = (isSilent) => {
    picture.hidden = !isSilent;
    host.hidden = isSilent;
  };
  const shown = start(page, source, NOWHERE);
  return () => {
    shown.close();
    source.close();
    watcher.disconnect();
    host.remove();
    picture.remove();
  };
}

/** The joint's static picture, as the model has it, in the notebook's own style: for where nobody answers. */
function still(model) {
  const drawn = el("div");
  drawn.innerHTML = model.get("picture") ?? ""; // made by Python, which escapes all names; it has no script
  return el("div", { hidden: true }, el("p", { role: "status" }, ALONE), drawn);
}

/** Light or dark as what lies below is, whatever the system likes. */
function followTheme(host) {
  const look = () => {
    host.style.colorScheme = isDark(host) ? "dark" : "light";
  };
  requestAnimationFrame(look);
  const watcher = new MutationObserver(look);
  for (const node of [document.documentElement, document.body]) watcher.observe(node, { attributes: true });
  return watcher;
}

function isDark(node) {
  for (let at = node.parentElement; at; at = at.parentElement) {
    const [r, g, b, alpha = 1] = getComputedStyle(at).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    if (alpha > 0.5) return 0.299 * r + 0.587 * g + 0.114 * b < 128;
  }
  return false;
}

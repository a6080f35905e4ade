/** Starts the page inside a cell of a notebook (anywidget), in a tree of its own: neither style reaches the other. */
import { NOWHERE } from "./address.js";
import { start } from "./explorer.js";
import { text as STYLE } from "./style.css";
import { text as INSIDE } from "./widget.css";
import { WidgetSource } from "./widget_source.js";

function render({ model, el }) {
  const host = document.createElement("div");
  host.dataset.lmSuppressShortcuts = "true"; // JupyterLab: letters typed here are not commands
  for (const kind of ["keydown", "keypress", "keyup"]) host.addEventListener(kind, (event) => event.stopPropagation());
  const tree = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = STYLE + INSIDE;
  const page = document.createElement("div");
  page.className = "page";
  tree.append(style, page);
  el.append(host);
  const watcher = followTheme(host);
  const source = new WidgetSource(model);
  const explorer = start(page, source, NOWHERE);
  return () => {
    explorer.close();
    source.close();
    watcher.disconnect();
    host.remove();
  };
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

export default { render };

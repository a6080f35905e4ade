/** Shows an answer when it comes. */
import { el } from "./dom.js";

/**
 * Show an answer in a node, or what went wrong; nothing if it was overtaken.
 * @param {HTMLElement} node
 * @param {Promise<object|null>} asked
 * @param {(answer: object) => (Node|string)[]} show
 */
export async function fill(node, asked, show) {
  node.setAttribute("aria-busy", "true");
  try {
    const answer = await asked;
    if (answer === null) return;
    node.replaceChildren(...show(answer));
  } catch (error) {
    node.replaceChildren(el("p", { class: "trouble" }, error.message));
  }
  node.removeAttribute("aria-busy");
}

/** Shows an answer when it comes, and meanwhile that it is worked on. */
import { el } from "./dom.js";

const SOON = 400; // milliseconds until it is said that the answer is worked on
const LONG = 3000; // until it is said why it may take so long

/**
 * Show an answer in a node, or what went wrong; nothing if it was overtaken.
 * @param {HTMLElement} node
 * @param {Promise<object|null>} asked
 * @param {(answer: object) => (Node|string)[]} show
 */
export async function fill(node, asked, show) {
  node.setAttribute("aria-busy", "true");
  const stop = sayWorking(node);
  try {
    const answer = await asked;
    if (answer === null) return;
    node.replaceChildren(...show(answer));
  } catch (error) {
    node.replaceChildren(el("p", { class: "trouble" }, error.message));
  } finally {
    stop();
  }
  node.removeAttribute("aria-busy");
}

/** Say above a node, after a while, that its answer is worked on; a function that takes this back. */
function sayWorking(node) {
  const line = el("p", { class: "working", role: "status" });
  const timers = [
    setTimeout(() => {
      line.textContent = "Working …";
      node.before(line);
    }, SOON),
    setTimeout(() => {
      line.textContent = "Working … The first question of its kind takes longest, because its code is compiled once.";
    }, LONG),
  ];
  return () => {
    timers.forEach(clearTimeout);
    line.remove();
  };
}

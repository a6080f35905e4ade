/** What moves, and what stands still where less motion is wished for. */

import { focusedNear } from "./dom.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const LASTS = 220;

/** Whether things may move. */
export const moves = () => !calm.matches && document.visibilityState === "visible";

/**
 * Draw arrays of numbers, gliding from what was drawn last.
 * @param {(values: Float64Array) => void} draw
 */
export function glide(draw) {
  let shown = null;
  let frame = 0;
  return (target, still) => {
    cancelAnimationFrame(frame);
    const from = shown;
    const to = Float64Array.from(target);
    if (still || !from || from.length !== to.length || !moves()) {
      draw((shown = to));
      return;
    }
    const begin = performance.now();
    const now = new Float64Array(to.length);
    const step = (time) => {
      const t = Math.min(1, Math.max(0, (time - begin) / LASTS));
      const eased = 1 - (1 - t) ** 3;
      for (let k = 0; k < to.length; k += 1) now[k] = from[k] + (to[k] - from[k]) * eased;
      draw((shown = t < 1 ? now : to));
      if (t < 1) frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  };
}

/**
 * Put the children of a node in an order; they glide to their places.
 * @param {HTMLElement} parent
 * @param {HTMLElement[]} order
 */
export function reorder(parent, order) {
  if (order.every((child, k) => parent.children[k] === child)) return;
  const focused = focusedNear(parent);
  const shown = moves() ? order.filter((child) => child.onScreen) : [];
  const before = new Map(shown.map((child) => [child, child.getBoundingClientRect()]));
  parent.append(...order);
  if (focused && parent.contains(focused)) focused.focus({ preventScroll: true });
  for (const [child, was] of before) {
    const is = child.getBoundingClientRect();
    const from = `translate(${was.left - is.left}px, ${was.top - is.top}px)`;
    child.animate([{ transform: from }, { transform: "none" }], { duration: 320, easing: "cubic-bezier(.2,.7,.2,1)" });
  }
}

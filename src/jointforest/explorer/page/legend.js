/** What the colours and marks of the cards mean, and the switch of their scale. */
import "./tour.js";
import { define, el, mark, say } from "./dom.js";

const MEANINGS = [
  ["k-now", "given the evidence"],
  ["k-before", "without evidence"],
  ["k-tick", "end of the bar without evidence"],
  ["k-mean", "mean, and the middle 90% of the values"],
  ["k-cut", "taller than the picture"],
  ["k-rows", "rows of the table that meet the evidence, where the page has it"],
  ["k-pale", "pale: fewer than 5 rows of the table are like this"],
];
const BITS = "bits: how far the evidence moved a column";
const COMPARED = {
  "k-now": "B: given the evidence now",
  "k-before": "A: given the evidence that was kept",
  "k-tick": "end of the bar of A",
  bits: "apart: how much probability A and B have on different values",
};
const SCALES = { full: "to 100%", most: "to the longest" };

/** Says `scale` with `detail.scale`. */
export class Legend extends HTMLElement {
  connectedCallback() {
    if (this.switches) return;
    this.switches = Object.entries(SCALES).map(([scale, text]) =>
      el("button", { type: "button", "aria-pressed": "false", "data-scale": scale, onclick: () => this.#tell(scale) }, text),
    );
    this.meanings = Object.fromEntries(MEANINGS.map(([key, text]) => [key, el("span", { dir: "auto" }, text)]));
    this.meanings.bits = el("span", {}, BITS);
    const meanings = Object.entries(this.meanings).map(([key, text]) => el("span", {}, key === "bits" ? null : el("i", { class: key, "aria-hidden": "true" }), text));
    const isNarrow = matchMedia("(max-width: 560px)").matches;
    this.append(
      el("span", { class: "scale-of-bars" }, "bars reach"),
      el("div", { class: "choice", role: "group", "aria-label": "scale of the bars of all cards" }, ...this.switches),
      ...(isNarrow ? [el("details", {}, el("summary", {}, "colours and marks"), ...meanings)] : meanings),
      document.createElement("jf-tour"),
    );
  }

  /**
   * @param {"full"|"most"} scale
   * @param {string|null} kept - the evidence that the cards are compared with
   */
  update(scale, kept) {
    for (const button of this.switches) mark(button, "aria-pressed", button.dataset.scale === scale);
    const words = kept === null ? { ...Object.fromEntries(MEANINGS), bits: BITS } : COMPARED;
    for (const [key, text] of Object.entries(words)) say(this.meanings[key], text);
  }

  #tell(scale) {
    this.dispatchEvent(new CustomEvent("scale", { detail: { scale }, bubbles: true }));
  }
}

define("jf-legend", Legend);

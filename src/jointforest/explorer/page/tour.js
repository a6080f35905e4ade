/** A tour of five steps; the first time the button that starts it stands out. */
import { define, el, say } from "./dom.js";

const KEY = "jointforest-tour";
const STEPS = [
  ["jf-card:not([hidden])", "Each card is a column of the table: beige before the evidence, teal given the evidence."],
  ["jf-card:not([hidden]) :is(jf-bars, jf-histogram)", "Click a bar, or drag over a histogram. That is evidence, and all other cards follow."],
  ["jf-sentence .given", "Here stands what is known. The line below says how many rows are like that."],
  ["jf-toolbar .asks", "Panels say more: two pieces of evidence side by side, what was known before, and what else is offered here."],
  ["jf-sentence .doing", "Undo a step, start over, or copy what is known as Python, to go on there."],
];

/** The button that starts the tour, and what it says. */
export class Tour extends HTMLElement {
  connectedCallback() {
    if (this.begin) return;
    this.begin = el("button", { type: "button", class: "quiet", onclick: () => this.#show(0) }, "take the tour");
    this.begin.classList.toggle("new", !wasSeen());
    this.text = el("p", { role: "status" });
    this.next = el("button", { type: "button", onclick: () => this.#show(this.step + 1) }, "next");
    const stop = el("button", { type: "button", class: "quiet", onclick: () => this.#show(STEPS.length) }, "stop");
    this.box = el("div", { class: "tour", role: "group", "aria-label": "tour", hidden: true }, this.text, this.next, stop);
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#show(STEPS.length);
    });
    this.append(this.begin, this.box);
  }

  /** Show a step; after the last one the tour is over. */
  #show(step) {
    this.step = step;
    this.pointed?.classList.remove("pointed");
    this.box.hidden = step >= STEPS.length;
    if (this.box.hidden) {
      remember();
      this.begin.classList.remove("new");
      return this.begin.focus({ preventScroll: true });
    }
    const [where, text] = STEPS[step];
    this.pointed = this.closest("[data-state]")?.querySelector(where) ?? null;
    this.pointed?.classList.add("pointed");
    this.pointed?.scrollIntoView({ block: "nearest" });
    say(this.text, `${step + 1} of ${STEPS.length}: ${text}`);
    say(this.next, step + 1 < STEPS.length ? "next" : "done");
    return this.next.focus({ preventScroll: true });
  }
}

/** Whether the tour was taken in this browser, as far as it lets a page remember. */
function wasSeen() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "seen");
  } catch {
    // it is offered again the next time
  }
}

define("jf-tour", Tour);

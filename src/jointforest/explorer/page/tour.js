/** A tour of five steps; the first time it is offered. */
import { define, el, say } from "./dom.js";

const KEY = "jointforest-tour";
const STEPS = [
  ["jf-card:not([hidden])", "Each card is a column of the table. Beige is its distribution without evidence, teal given the evidence."],
  ["jf-card:not([hidden]) :is(jf-bars, jf-histogram)", "Click a bar, or drag over a histogram. This gives evidence, and all other cards change with it."],
  ["jf-sentence .given", "The evidence stands here. The line below says how many rows meet it."],
  ["jf-toolbar .asks", "Panels answer further questions, such as how two pieces of evidence differ, or which evidence you gave before."],
  ["jf-sentence .doing", "Undo a step, start over, or copy the evidence as Python code."],
];

/** The button that starts the tour, and what it says. */
export class Tour extends HTMLElement {
  connectedCallback() {
    if (this.begin) return;
    this.begin = el("button", { type: "button", class: "quiet", onclick: () => this.#show(0) }, "take the tour");
    this.text = el("p", { role: "status" });
    this.next = el("button", { type: "button", onclick: () => this.#show(this.step + 1) }, "next");
    this.stop = el("button", { type: "button", class: "quiet", onclick: () => this.#show(STEPS.length) }, "stop");
    this.box = el("div", { class: "tour", role: "group", "aria-label": "tour", hidden: true }, this.text, this.next, this.stop);
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#show(STEPS.length);
    });
    this.append(this.begin, this.box);
    if (!wasSeen()) this.#offer();
  }

  /** Offer the tour; the focus stays where it is. */
  #offer() {
    this.step = -1;
    this.box.hidden = false;
    say(this.text, "New here? A tour of five steps shows how this page works.");
    say(this.next, "start");
    say(this.stop, "no, thanks");
  }

  /** Show a step; after the last one the tour is over. */
  #show(step) {
    this.step = step;
    this.pointed?.classList.remove("pointed");
    this.box.hidden = step >= STEPS.length;
    if (this.box.hidden) {
      remember();
      return this.begin.focus({ preventScroll: true });
    }
    const [where, text] = STEPS[step];
    this.pointed = this.closest("[data-state]")?.querySelector(where) ?? null;
    this.pointed?.classList.add("pointed");
    this.pointed?.scrollIntoView({ block: "nearest" });
    say(this.text, `${step + 1} of ${STEPS.length}: ${text}`);
    say(this.next, step + 1 < STEPS.length ? "next" : "done");
    say(this.stop, "stop");
    return this.next.focus({ preventScroll: true });
  }
}

/** Whether the tour was offered in this browser; also where a page cannot remember it, and would offer it each time. */
function wasSeen() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return true;
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "seen");
  } catch {
    // then it was not offered either
  }
}

define("jf-tour", Tour);

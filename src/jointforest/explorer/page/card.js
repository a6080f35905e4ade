/** One column: its name, the evidence on it, and its distribution given all the evidence. */
import "./bars.js";
import "./histogram.js";
import { define, el, focusedNear, freshId, iconButton, mark, named, say } from "./dom.js";
import { bits, percent, writer } from "./format.js";
import * as icons from "./icons.js";
import { pictureOf, savePicture } from "./picture.js";

/** Says `evidence` with `detail: {column, condition, live}`, `pin` and `hide` with `detail: {column}`. */
export class Card extends HTMLElement {
  /**
   * @param {import("./state.js").Column} column
   * @param {number} place - of the column in the table
   * @param {boolean} canRead - whether the source reads texts
   */
  setColumn(column, place, canRead) {
    this.column = column;
    this.place = place;
    this.canRead = canRead;
    this.write = column.edges ? writer(column) : null;
    this.dataset.name = column.name;
    const id = freshId("card");
    this.setAttribute("role", "group");
    this.setAttribute("aria-labelledby", id);
    this.moved = el("span", { class: "moved", title: "how far the evidence moved this distribution, in bits (Kullback-Leibler divergence); 0 is no change" });
    this.pin = iconButton(`pin ${column.name}`, icons.PIN, () => this.#tell("pin"), { "aria-pressed": "false" });
    const hide = iconButton(`hide ${column.name}`, icons.HIDE, () => this.#tell("hide"));
    this.axisButton = column.edges && iconButton(`axis of ${column.name}`, icons.ZOOM, () => this.#offerAxes(), { "aria-expanded": "false", hidden: true });
    const save = iconButton(`save a picture of ${column.name}`, icons.SAVE, () => this.#offerPicture(), {
      "aria-expanded": "false",
    });
    this.saveButton = save;
    const name = el("h2", { id, dir: "auto", title: column.name }, named(column.name));
    this.append(el("header", {}, name, el("span", { class: "tools" }, this.axisButton, save, this.pin, hide), this.moved));
  }

  /** Make what is inside, once it is about to be seen. */
  #build() {
    const { column } = this;
    this.typed = el("input", {
      class: "typed",
      type: "text",
      placeholder: "any value",
      readonly: !this.canRead,
      spellcheck: "false",
      autocomplete: "off",
      dir: "auto",
      "aria-label": `evidence on ${column.name}`,
      title: this.#hint(),
      onkeydown: (event) => this.#typedKey(event),
      oninput: () => {
        this.isTyping = true; // pasted by the mouse, too
      },
      onchange: () => this.#typedChange(),
    });
    this.release = iconButton(`remove the evidence on ${column.name}`, icons.CLOSE, () => this.#evidence(null), {
      hidden: true,
    });
    this.picture = this.#picture();
    this.summary = el("p", { class: "summary" });
    this.absent = this.#absent();
    this.append(
      el("div", { class: "said" }, this.typed, this.release),
      this.picture,
      el("footer", {}, this.summary, column.can_miss ? this.absent : null),
    );
  }

  #picture() {
    const picture = document.createElement(this.column.levels ? "jf-bars" : "jf-histogram");
    picture.setColumn(this.column);
    picture.addEventListener("choose", (event) => {
      event.stopPropagation();
      this.#evidence(event.detail.condition, event.detail.live);
    });
    return picture;
  }

  /** Show the same column on another axis. */
  setAxis(column) {
    this.column = column;
    this.write = writer(column);
    if (!this.picture) return;
    const picture = this.#picture();
    this.picture.replaceWith(picture);
    this.picture = picture;
  }

  /** Show, or take away, the buttons that choose another axis. */
  #offerAxes() {
    const { column, condition, known } = this;
    const { low, high } = known.now;
    const [from, to] = [condition?.low ?? low, condition?.high ?? high];
    const choices = [
      from !== null && to > from ? [`zoom to ${this.write.value(from)} to ${this.write.value(to)}`, { low: from, high: to }] : null,
      column.heavy && column.axis !== "log" ? ["logarithmic axis", { log: true }] : null,
      column.is_time && column.axis !== "survival" ? ["survival curve", { survival: true }] : null,
      column.axis ? [column.axis === "survival" ? "histogram" : "whole axis", null] : null,
    ];
    this.#offer(this.axisButton, choices.filter(Boolean).map(([text, axis]) => [text, () => this.#tell("axis", { axis })]));
  }

  // -------------------------------------------------------------------------------------------------------- pictures

  /** Show, or take away, the buttons that save the card as a picture. */
  #offerPicture() {
    this.#offer(this.saveButton, ["SVG", "PNG"].map((kind) => [`save as ${kind}`, () => this.#save(kind)]));
  }

  /** Show, or take away, choices below the name; a choice takes them away, too. */
  #offer(button, choices) {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    for (const one of [this.saveButton, this.axisButton]) if (one) mark(one, "aria-expanded", one === button && !isOpen);
    this.offer?.remove();
    if (isOpen) return;
    const choose = (act) => () => {
      this.#offer(button, []);
      button.focus({ preventScroll: true });
      act();
    };
    this.offer = el("div", { class: "offer" }, ...choices.map(([text, act]) => el("button", { type: "button", class: "quiet", onclick: choose(act) }, text)));
    this.querySelector("header").after(this.offer);
  }

  async #save(kind) {
    const { column } = this;
    const { now, before, sentence, kept } = this.known;
    const svg = pictureOf([{ column, now, before, shown: this.levelsShown }], sentence ?? "", kept);
    await savePicture(svg, column.name.replace(/[^\p{L}\p{N}_-]+/gu, "_") || "column", kind);
  }

  /** Levels in the order in which they are shown; of a card that was never seen, the first ones. */
  get levelsShown() {
    return this.picture?.shown ?? [...(this.column.levels ?? []).keys()].slice(0, 8);
  }

  #hint() {
    if (!this.canRead) return "the evidence on this column; click or drag below to change it, for this file reads no text";
    if (this.column.levels) return "type a level, or “in {A, B}”, “not A”, “is missing”";
    return this.column.kind === "datetime"
      ? "type “>= '2024-03-01'”, “between '2024-03-01' and '2024-04-01'”, “is missing”"
      : "type “40”, “>= 40”, “between 20 and 60”, “not 40”, “is missing”";
  }

  #absent() {
    this.absentValue = el("span", { class: "bar-value" });
    return el(
      "button",
      {
        type: "button",
        class: "absent",
        "aria-pressed": "false",
        title: "the cell is missing",
        onclick: () => this.#evidence(this.condition?.missing === true ? null : { missing: true }),
      },
      el("span", {}, "missing"),
      this.absentValue,
    );
  }

  // --------------------------------------------------------------------------------------------------------- drawing

  /**
   * Keep an answer, and draw it if the card is on the screen: off it, drawing would slow a drag down.
   * @param {{now: object, before: object, apart: number, condition: object|null, live: boolean, kept: string|null}} known
   *   - kept: the evidence of `before`, where that is compared with; apart: how far `now` is from it, else bits
   */
  update(known) {
    this.known = known;
    this.condition = known.condition;
    this.isStale = true;
    this.classList.toggle("evident", Boolean(known.condition));
    if (this.onScreen) this.draw();
  }

  /** Draw the answer that is kept. */
  draw() {
    if (!this.known || !this.isStale) return;
    this.isStale = false;
    if (!this.picture) this.#build();
    const { now, before, apart, condition, live, top, kept } = this.known;
    say(this.moved, apart < 0.005 ? "" : kept === null ? `${bits(apart)} bits` : `${percent(apart)} apart`);
    if (focusedNear(this) !== this.typed || !this.isTyping) this.#showCondition(condition);
    this.picture.update({ ...now, prior: before.mass, before, condition, live, top, beside: kept === null ? "without evidence" : "A" });
    this.#summarise(now);
    if (this.column.can_miss) {
      const missing = now.missing ?? (condition ? 0 : null); // evidence on a cell says that it is there
      say(this.absentValue, missing === null ? "" : percent(missing));
      mark(this.absent, "aria-pressed", condition?.missing === true);
    }
  }

  #showCondition(condition) {
    const text = condition?.words ?? "";
    if (this.typed.value !== text) this.typed.value = text;
    this.typed.removeAttribute("aria-invalid");
    if (!condition && focusedNear(this) === this.release) this.typed.focus({ preventScroll: true });
    this.release.hidden = !condition;
  }

  #summarise({ mean, low, high }) {
    if (this.column.levels || low === null) return say(this.summary, "");
    const { write } = this;
    if (!this.numbers) {
      this.numbers = [el("b"), el("span")];
      this.summary.append(el("span", {}, "mean ", this.numbers[0]), el("span", {}, "90% of values: ", this.numbers[1]));
    }
    const { until } = this.column;
    const isLater = (x) => until != null && x >= until;
    const end = isLater(high) ? `more than ${write.value(until)}` : write.value(high);
    say(this.numbers[0], mean !== null ? write.mean(mean) : until == null ? "–" : "not learned");
    return say(this.numbers[1], low === high ? end : `${write.value(low)} to ${end}`);
  }

  // ------------------------------------------------------------------------------------------------------- evidence

  #typedKey(event) {
    this.isTyping = !["Enter", "Escape", "Tab"].includes(event.key);
    if (event.key === "Escape") this.#showCondition(this.condition);
  }

  #typedChange() {
    this.isTyping = false;
    const text = this.typed.value.trim();
    if (text !== (this.condition?.words ?? "")) this.#evidence(text ? { text } : null, false, true);
  }

  /** What was typed was refused: it stays to be mended. */
  refuse() {
    this.typed?.setAttribute("aria-invalid", "true");
    this.isTyping = true;
  }

  #evidence(condition, live = false, typed = false) {
    this.#tell("evidence", { condition, live, typed });
  }

  #tell(name, detail = {}) {
    this.dispatchEvent(new CustomEvent(name, { detail: { column: this.place, ...detail }, bubbles: true }));
  }
}

define("jf-card", Card);

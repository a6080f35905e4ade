/** The evidence as a sentence that can be edited, and how probable it is. */
import { copy } from "./clipboard.js";
import { define, el, iconButton, say } from "./dom.js";
import { oneIn, percent, superscript } from "./format.js";
import * as icons from "./icons.js";

const EXAMPLE = "No evidence yet. Click a bar, drag over a histogram, or type a condition here.";

/** Says `sentence` with `detail.text`, `undo`, `redo`, `clear`. */
export class Sentence extends HTMLElement {
  connectedCallback() {
    addEventListener("resize", this.resized);
    if (!this.text) this.#build();
  }

  disconnectedCallback() {
    removeEventListener("resize", this.resized);
  }

  resized = () => this.#fit();

  #build() {
    this.text = el("textarea", {
      rows: 1,
      class: "sentence",
      spellcheck: "false",
      autocomplete: "off",
      placeholder: EXAMPLE,
      dir: "auto",
      "aria-label": "the evidence, in the query language",
      "aria-describedby": "trouble",
      onkeydown: (event) => this.#key(event),
      oninput: () => this.#fit(),
      onblur: () => this.#commit(),
    });
    this.chance = el("strong", { class: "chance" });
    this.detail = el("span", { class: "detail" });
    this.rows = el("span", { class: "support", title: "rows of the table that meet the evidence" });
    this.weak = el(
      "span",
      {
        class: "weak",
        hidden: true,
        title: "few rows of the table meet the evidence: the answers come from what the model assumes",
      },
    );
    this.unseen = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.undo = iconButton("undo", icons.UNDO, () => this.#tell("undo"), { title: "undo (Ctrl+Z)", disabled: true });
    this.redo = iconButton("redo", icons.REDO, () => this.#tell("redo"), {
      title: "redo (Ctrl+Shift+Z)",
      disabled: true,
    });
    this.clear = el(
      "button",
      { type: "button", class: "quiet", onclick: () => this.#tell("clear"), disabled: true },
      "start over",
    );
    this.copied = el("span", { class: "copied", role: "status" });
    this.append(
      el("label", { class: "given" }, el("span", { class: "over", "aria-hidden": "true" }, "evidence"), this.text),
      el(
        "div",
        { class: "odds" },
        this.chance,
        this.detail,
        this.rows,
        this.weak,
        el(
          "span",
          { class: "doing" },
          this.undo,
          this.redo,
          this.clear,
          el(
            "span",
            { class: "copies" },
            "copy as",
            ...["Python", "shell", "link"].map((what) => this.#copyButton(what)),
            this.copied,
          ),
        ),
      ),
      this.unseen,
    );
    document.fonts?.ready.then(() => this.#fit());
  }

  /** Leave out what the source cannot do: read a sentence, be asked by a command, be linked to. */
  setCan(can) {
    this.text.readOnly = !can("text");
    if (!this.text.readOnly) return this.#setCopies(can);
    this.text.placeholder = "No evidence yet. Click a bar, or drag over a histogram.";
    this.text.title = "the evidence, in the query language; Python can read such a sentence, this file cannot";
    this.text.setAttribute("aria-label", this.text.title);
    return this.#setCopies(can);
  }

  #setCopies(can) {
    for (const button of this.querySelectorAll("[data-copies]"))
      button.hidden = { shell: !can("shell"), link: !can("link") }[button.dataset.copies] ?? false;
  }

  #copyButton(what) {
    return el(
      "button",
      {
        type: "button",
        class: "quiet",
        onclick: () => this.#copy(what),
        "aria-label": `copy as ${what}`,
        "data-copies": what,
      },
      what,
    );
  }

  /**
   * Show an answer.
   * @param {{sentence: string, probability: number|null, log_probability: number, supported: boolean, python: string,
   *   shell: string}} answer
   * @param {{live: boolean, rows?: number|null}} note
   */
  update(answer, { live }) {
    this.answer = answer;
    if (!this.isEdited) this.#show(answer.sentence);
    const isDensity = answer.probability === null;
    const isNothing = answer.sentence === "";
    say(
      this.chance,
      isDensity ? "one exact point" : isNothing ? "all rows" : oneIn(answer.probability, answer.log_probability),
    );
    const log = answer.log_probability.toFixed(2).replace("-", "−");
    say(this.detail, isNothing ? "" : isDensity ? `log-density ${log}` : `probability ${probability(answer)}`);
    this.detail.title = `logarithm ${log}`;
    say(this.weak, answer.supported ? (answer.extrapolated ? answer.support : "") : "not supported: no learned row is like this");
    this.weak.hidden = answer.supported && !answer.extrapolated;
    say(this.rows, answer.extrapolated ? "" : (answer.support ?? ""));
    this.closest("[data-state]")?.classList.toggle("extrapolated", Boolean(answer.extrapolated));
    this.clear.disabled = isNothing;
    if (!live)
      say(
        this.unseen,
        `${this.chance.textContent}, ${this.detail.textContent}${answer.supported ? "" : ", not supported"}`,
      );
  }

  /** Show what can be undone. */
  setHistory(history) {
    this.undo.disabled = !history.canUndo;
    this.redo.disabled = !history.canRedo;
  }

  /** Show a sentence that is not yet answered. */
  #show(sentence) {
    if (this.text.value !== sentence) {
      this.text.value = sentence;
      this.#fit();
    }
    this.text.removeAttribute("aria-invalid");
  }

  /** What was written was refused: it stays to be mended. */
  refuse() {
    this.text.setAttribute("aria-invalid", "true");
  }

  /** Put words into the field without asking for them. */
  write(text) {
    this.text.value = text;
    this.isEdited = true;
    this.#fit();
  }

  /** Forget what was being written. */
  revert() {
    this.isEdited = false;
    this.#show(this.answer?.sentence ?? "");
  }

  #fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight}px`;
  }

  #key(event) {
    if (this.text.readOnly) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#commit(true);
    } else if (event.key === "Escape") this.#tell("revert");
    else if (!event.ctrlKey && !event.metaKey && event.key !== "Tab") this.isEdited = true;
  }

  #commit(now = false) {
    if (!this.isEdited) return;
    const text = this.text.value.trim();
    if (text === this.answer?.sentence && !now) return this.revert();
    if (!now && this.text.getAttribute("aria-invalid")) return undefined;
    return this.#tell("sentence", { text });
  }

  async #copy(what) {
    const text = { Python: this.answer?.python, shell: this.answer?.shell, link: location.href }[what];
    say(this.copied, (await copy(text ?? "")) ? "copied" : "the browser does not allow this page to copy");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => say(this.copied, ""), 2500);
  }

  #tell(name, detail = {}) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }
}

/** A probability in per cent, with digits enough to tell it from 0. */
function probability({ probability: p }) {
  if (p >= 0.0005) return percent(p);
  return p > 0
    ? p
        .toExponential(1)
        .replace(/e([+-]\d+)$/, (_, power) => ` × 10${superscript(Number(power))}`)
    : "below the smallest number";
}

define("jf-sentence", Sentence);

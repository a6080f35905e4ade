/** Two pieces of evidence, A kept and B the evidence now: what each says of every column, how far apart, as a picture. */
import { newest } from "./asker.js";
import { breakable, el, named, say } from "./dom.js";
import { percent, writer } from "./format.js";
import { fill } from "./fill.js";
import { pictureOf, savePicture } from "./picture.js";
import { labelOf } from "./labels.js";

const SHOWN = 20;
const IN_PICTURE = 12;
const NAMES = ["A", "B"];

export class ComparePanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.sides = NAMES.map(() => el("span", { dir: "auto" }));
    this.answer = el("div");
    const keep = el("button", { type: "button", onclick: () => this.#keep(explorer.good) }, "use the evidence as A");
    const save = (kind) => el("button", { type: "button", class: "quiet", onclick: () => this.#save(kind) }, `save as ${kind}`);
    body.append(
      el("p", { class: "lead" }, "The cards show B, the evidence now, in front of A. The columns that differ most come first."),
      el("dl", { class: "compared" }, ...NAMES.map((name, which) => el("div", {}, el("dt", {}, name), el("dd", {}, this.sides[which], which ? null : keep)))),
      this.answer,
      el("p", { class: "row-of-buttons" }, save("SVG"), save("PNG")),
    );
  }

  update() {
    const { kept, answer, view } = this.explorer;
    if (!kept) return this.#keep(view.a ? { text: view.a } : []);
    say(this.sides[0], kept.sentence || "no evidence");
    say(this.sides[1], answer.sentence || "no evidence");
    return this.answer.replaceChildren(...this.#table());
  }

  /** Keep evidence as A, with its exact numbers. */
  #keep(evidence) {
    return fill(this.answer, this.ask("posterior", { evidence, exact: true, columns: null, axes: this.explorer.axes }), (answer) => {
      this.explorer.keep(answer);
      return this.#table();
    });
  }

  /** Columns with what A and B say of them, those that differ most first. */
  #lines() {
    const { columns, kept, answer, apart } = this.explorer;
    const lines = columns.map((column, k) => ({ column, k, a: kept.columns[k], b: answer.columns[k], apart: apart[k] }));
    return lines.sort((x, y) => y.apart - x.apart);
  }

  #table() {
    const head = ["column", ...NAMES, "difference"].map((text) => el("th", { scope: "col" }, text));
    const rows = this.#lines().slice(0, SHOWN).map(({ column, a, b, apart }) => {
      const bar = el("span", { class: "weight", "aria-hidden": "true" }, el("i"));
      bar.firstChild.style.width = `${100 * apart}%`;
      return el(
        "tr",
        {},
        el("th", { scope: "row", dir: "auto" }, ...breakable(named(column.name))),
        ...told(column, a, b).map((text) => el("td", { dir: "auto" }, text)),
        el("td", {}, bar, el("small", {}, percent(apart))),
      );
    });
    const note = "Difference: how much probability lies on other values. 0% is the same distribution, 100% has nothing in common.";
    return [
      el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "both pieces of evidence" },
        el("table", { class: "compared-columns" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)),
      ),
      el("p", { class: "note" }, note),
    ];
  }

  /** Save the cards of the columns that differ most as one picture. */
  #save(kind) {
    const { cards, kept, answer, table } = this.explorer;
    const lines = this.#lines().slice(0, IN_PICTURE);
    const some = lines.map(({ column, k, a, b }) => ({ column, before: a, now: b, shown: cards[k].levelsShown }));
    return savePicture(pictureOf(some, answer.sentence, kept.sentence), `${table.title.replace(/\.joint$/, "")}-compared`, kind);
  }
}

/** What each side says of a column: the mean of numbers; of levels the share of the one that differs most. */
function told(column, a, b) {
  if (!column.levels) {
    const write = writer(column);
    return [a, b].map(({ mean }) => (mean === null ? "–" : `mean ${write.mean(mean)}`));
  }
  const gaps = a.mass.map((x, k) => Math.abs(x - b.mass[k]));
  const k = gaps.indexOf(Math.max(...gaps));
  return [a, b].map(({ mass }) => `${labelOf(column, k)} ${percent(mass[k])}`);
}

/** Two pieces of evidence side by side: what each says of every column, and how far apart these are. */
import { newest } from "./asker.js";
import { breakable, el, named } from "./dom.js";
import { percent, writer } from "./format.js";
import { fill } from "./fill.js";
import { labelOf } from "./typed.js";

const SHOWN = 20;
const NAMES = ["A", "B"];

export class ComparePanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    explorer.compared ??= [{ evidence: [], sentence: "" }, null];
    this.asks = [newest(explorer.source), newest(explorer.source)];
    this.sides = NAMES.map(() => el("span", { dir: "auto" }));
    this.answer = el("div");
    body.append(
      el("p", { class: "lead" }, "What two pieces of evidence say of each column. The columns that differ most come first."),
      el("dl", { class: "compared" }, ...NAMES.map((name, which) => this.#side(name, which))),
      this.answer,
    );
  }

  #side(name, which) {
    const button = el("button", { type: "button", onclick: () => this.#keep(which) }, `use the evidence as ${name}`);
    return el("div", {}, el("dt", {}, name), el("dd", {}, this.sides[which], button));
  }

  /** Keep the evidence as one side. */
  #keep(which) {
    this.explorer.compared[which] = { evidence: this.explorer.good, sentence: this.explorer.history.now?.sentence ?? "" };
    this.update();
  }

  update() {
    const now = { evidence: this.explorer.good, sentence: this.explorer.history.now?.sentence ?? "" };
    const [a, b] = this.explorer.compared;
    const both = [a, b ?? now];
    both.forEach(({ sentence }, which) => {
      this.sides[which].textContent = (sentence || "no evidence") + (which && !b ? " (the evidence now)" : "");
    });
    const asked = both.map(({ evidence }, which) => this.asks[which]("posterior", { evidence, exact: true, columns: null }));
    return fill(this.answer, this.#together(asked), (answers) => this.#show(answers));
  }

  async #together(asked) {
    const answers = await Promise.all(asked);
    return answers.includes(null) ? null : answers;
  }

  #show(answers) {
    const lines = this.explorer.columns.map((column, k) => {
      const [a, b] = answers.map(({ columns }) => columns[k]);
      const apart = 0.5 * a.mass.reduce((sum, x, i) => sum + Math.abs(x - b.mass[i]), 0);
      return { column, apart, told: told(column, a, b) };
    });
    lines.sort((x, y) => y.apart - x.apart);
    const head = ["column", ...NAMES, "difference"].map((text) => el("th", { scope: "col" }, text));
    const rows = lines.slice(0, SHOWN).map(({ column, apart, told: [a, b] }) => {
      const bar = el("span", { class: "weight", "aria-hidden": "true" }, el("i"));
      bar.firstChild.style.width = `${100 * apart}%`;
      return el(
        "tr",
        {},
        el("th", { scope: "row", dir: "auto" }, ...breakable(named(column.name))),
        el("td", { dir: "auto" }, a),
        el("td", { dir: "auto" }, b),
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

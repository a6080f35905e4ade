/** Why a column is predicted as it is: which pieces of evidence move the prediction, and by how much, as a waterfall. */
import { newest } from "./asker.js";
import { el, named } from "./dom.js";
import { percent, writer } from "./format.js";
import { fill } from "./fill.js";
import { ticks } from "./scale.js";
import { conditionOn } from "./state.js";
import { labelOf } from "./labels.js";

export class ReasonsPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    explorer.reason ??= { column: null, level: null };
    this.column = el("select", { "aria-label": "predicted column", onchange: () => this.#choose(Number(this.column.value)) });
    this.level = el("select", { "aria-label": "predicted level", onchange: () => this.#chooseLevel() });
    this.answer = el("div");
    body.append(
      el("p", { class: "lead" }, "How much each piece of evidence moves the prediction of a column."),
      el(
        "p",
        { class: "row-of-buttons" },
        el("label", {}, el("span", {}, "column"), this.column),
        el("label", {}, el("span", {}, "level"), this.level),
      ),
      this.answer,
    );
  }

  update() {
    const { columns, good, answer, reason } = this.explorer;
    const free = [...columns.keys()].filter((k) => !conditionOn(good, k));
    const isAsked = good.length > 0 && free.length > 0;
    this.column.parentElement.hidden = !isAsked;
    if (!isAsked) {
      this.level.parentElement.hidden = true;
      return this.answer.replaceChildren(el("p", { class: "note" }, "Give evidence first: click a bar, or drag over a histogram."));
    }
    if (!free.includes(reason.column))
      Object.assign(reason, { column: free.reduce((a, b) => (answer.columns[b].moved > answer.columns[a].moved ? b : a)), level: null });
    this.column.replaceChildren(
      ...free.map((k) => el("option", { value: k, selected: k === reason.column, dir: "auto" }, named(columns[k].name))),
    );
    return this.#ask();
  }

  #choose(column) {
    Object.assign(this.explorer.reason, { column, level: null });
    this.#ask();
  }

  #chooseLevel() {
    this.explorer.reason.level = Number(this.level.value);
    this.#ask();
  }

  #ask() {
    const { good, reason, columns } = this.explorer;
    const body = { evidence: good, column: reason.column, level: reason.level };
    return fill(this.answer, this.ask("reasons", body), (found) => this.#show(found, columns[reason.column]));
  }

  #show({ level, base, value, steps, is_exact: isExact }, column) {
    this.level.parentElement.hidden = !column.levels;
    if (column.levels) {
      const names = column.levels.map((_, k) => labelOf(column, k));
      this.level.replaceChildren(
        ...names.map((name, k) => el("option", { value: k, selected: String(column.levels[k]) === level || name === level, dir: "auto" }, name)),
      );
    }
    const write = column.levels ? percent : writer(column).mean;
    const by = column.levels ? (x) => `${(100 * x).toFixed(1)} points` : (x) => amount(x, column);
    const ends = [base];
    steps.forEach((step) => ends.push(ends.at(-1) + step.by));
    const first = column.levels ? 0 : Math.min(...ends);
    const axis = column.levels ? [0, 1] : spread([first, Math.max(...ends)]); // does not begin at 0: no bar begins at its end
    const line = (name, from, to, text, kind) => ({ name, from, to, text, kind });
    const what = column.levels ? `Probability that ${column.name} = ${level}` : `Mean of ${column.name}`;
    return [
      el("h3", { dir: "auto" }, what),
      stepBars(column, axis, [
        line("without evidence", axis[0], base, write(base), "base"),
        ...steps.map((step, k) => line(step.said, ends[k], ends[k + 1], `${step.by >= 0 ? "+" : "−"}${by(Math.abs(step.by))}`, step.by >= 0 ? "up" : "down")),
        line("with all the evidence", axis[0], value, write(value), "base"),
      ]),
      el(
        "p",
        { class: "note" },
        `Teal raises the prediction, orange lowers it. Each amount is ${isExact ? "" : "an estimate of "}the mean ` +
          "change that the piece makes, over all orders in which the pieces can be added (Shapley value).",
      ),
    ];
  }
}

/** An interval with a little room at both ends. */
export function spread([low, high]) {
  const room = 0.08 * (high - low);
  return [low - room, high + room];
}

/**
 * Lines with a name, a bar on one axis, and a text.
 * @param {object} column - whose values, or shares of levels, are on the axis
 * @param {number[]} axis - its ends
 * @param {{name: string, from: number, to: number, text: string, kind: string}[]} lines
 * @param {number|null} now - a value to mark on every bar; the axis is then not labelled
 */
export function stepBars(column, [low, high], lines, now = null) {
  const place = (x) => (high > low ? (100 * (x - low)) / (high - low) : 0);
  const items = lines.map(({ name, from, to, text, kind }) => {
    const bar = el("i", { class: kind });
    bar.style.insetInlineStart = `${Math.min(place(from), place(to))}%`;
    bar.style.width = `${Math.max(0.6, Math.abs(place(to) - place(from)))}%`;
    const at = now === null ? null : el("u");
    if (at) at.style.insetInlineStart = `${place(now)}%`;
    return el("li", {}, el("span", { dir: "auto" }, name), el("span", { class: "step-bar", "aria-hidden": "true" }, bar, at), el("b", {}, text));
  });
  const marks = ticks({ kind: column.kind, edges: [low, high], step: null }).map((x) => {
    const mark = el("i", {}, column.levels ? percent(x) : writer({ ...column, edges: [low, high] }).tick(x));
    mark.style.insetInlineStart = `${place(x)}%`;
    return mark;
  });
  const scale = high > low && now === null ? el("li", { "aria-hidden": "true" }, el("span"), el("span", { class: "step-axis" }, ...marks), el("b")) : null;
  return el("ol", { class: "reasons" }, ...items, scale);
}

const DAY = 86_400_000;

/** A difference of values of a column; of dates in days. */
function amount(x, column) {
  return column.kind === "datetime" ? `${(x / DAY).toFixed(1)} days` : writer(column).mean(x);
}

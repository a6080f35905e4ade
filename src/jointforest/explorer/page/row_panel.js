/** One row of a table, with its unlikely cells marked. Only the shown row of a file is sent to Python. */
import { newest } from "./asker.js";
import { readCsv } from "./csv.js";
import { breakable, el, focusedNear, named, say } from "./dom.js";
import { count, oneIn } from "./format.js";
import { fill } from "./fill.js";
import { predictionOf } from "./prediction.js";

const MISSING = new Set(["", "NA", "NaN", "nan", "null", "None"]);
const ODD = -Math.log(0.02); // a cell is marked if its tail probability is below 0.02
const SAID = -Math.log(0.2); // no text for cells with a tail probability above 0.2

export class RowPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    /** Rows of a file; without a file, those of the table that the server has, if any. */
    explorer.row ??= { rows: null, count: explorer.table.rows ?? 0, at: 0, cells: null, without: [] };
    this.file = el("input", { type: "file", accept: ".csv,text/csv,text/plain", onchange: () => this.#read() });
    this.number = el("span", { role: "status" });
    this.walk = el(
      "span",
      { class: "with" },
      el("button", { type: "button", onclick: () => this.#go(-1) }, "previous"),
      this.number,
      el("button", { type: "button", onclick: () => this.#go(1) }, "next"),
    );
    this.answer = el("div");
    body.append(
      el(
        "p",
        { class: "lead" },
        "Each cell is compared with what the other cells of its row suggest. Unlikely cells are marked, and the expected " +
          "value stands below them. Edit a cell, or clear its tick: then it counts as unknown. A CSV file that you choose " +
          "is read in this page, and only the row shown is sent to Python.",
      ),
      el(
        "p",
        { class: "row-of-buttons" },
        el("label", { class: "file" }, el("span", {}, "rows of a CSV file"), this.file),
        this.walk,
        el("button", { type: "button", onclick: () => this.#draw() }, "draw a row"),
      ),
      this.answer,
    );
  }

  update() {
    const { count: n, at, cells } = this.explorer.row;
    this.walk.hidden = !n;
    say(this.number, n ? `row ${count(at + 1)} of ${count(n)}` : "");
    if (!n && !cells) return this.#draw();
    return this.#look(cells ? { cells } : { row: at });
  }

  /** Ask about the current row. */
  #look(body) {
    const { row, columns } = this.explorer;
    row.without = row.without.filter((name) => columns.some((column) => column.name === name));
    this.asked = body;
    return fill(this.answer, this.ask("row", { ...body, without: row.without }), (answer) => this.#show(answer));
  }

  #show({ log_density: log, cells, prediction }) {
    const focused = focusedNear(this.answer)?.dataset.known;
    if (focused !== undefined) queueMicrotask(() => this.#focus(focused));
    this.shown = Object.fromEntries(cells.map(({ name, text }) => [name, text]));
    const origin = this.explorer.row.isDrawn ? "Drawn from the joint given the evidence; " : "";
    const head = ["column", "value", "how unlikely"].map((text) => el("th", { scope: "col" }, text));
    const table = el(
      "table",
      { class: "one-row" },
      el("thead", {}, el("tr", {}, ...head)),
      el("tbody", {}, ...cells.map((cell) => this.#line(cell))),
    );
    return [
      ...(prediction ? [predictionOf(prediction)] : []),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "the row" }, table),
      el("p", { class: "note" }, `${origin}log-density ${log === null ? "−∞" : log.toFixed(2).replace("-", "−")}`),
    ];
  }

  /** Focus the box of a column again after the table has been replaced. */
  #focus(name) {
    [...this.answer.querySelectorAll("[data-known]")].find((box) => box.dataset.known === name)?.focus();
  }

  #line({ name, text, unlikely, expected, known, unseen }) {
    const isOdd = unlikely !== null && unlikely > ODD;
    const isOut = text !== null && !known;
    const box = el("input", {
      type: "checkbox",
      checked: known,
      disabled: text === null,
      "data-known": name,
      "aria-label": `${name} is known`,
      title: known ? "count this cell as unknown" : "count this cell as known",
      onchange: () => this.#know(name, box.checked),
    });
    const field = el("input", {
      type: "text",
      dir: "auto",
      value: text ?? "",
      placeholder: unseen === null ? "missing" : `${unseen} (never seen)`,
      spellcheck: "false",
      "aria-label": name,
      onchange: () => this.#edit(name, field.value),
    });
    const isExpectedSaid = expected !== null && (isOdd || isOut || text === null);
    const bar = el("span", { class: "weight", "aria-hidden": "true" }, el("i"));
    bar.firstChild.style.width = `${Math.min(100, (100 * (unlikely ?? 0)) / (2 * ODD))}%`;
    const far = unlikely !== null && unlikely > SAID ? oneIn(Math.exp(-unlikely), -unlikely).replace("row in", "in") : "";
    return el(
      "tr",
      { class: [isOdd ? "odd" : "", isOut ? "taken" : ""].join(" ").trim() || null },
      el("th", { scope: "row", title: name }, el("span", { class: "tick-box" }, box, el("span", { dir: "auto" }, ...breakable(named(name))))),
      el("td", {}, field, isExpectedSaid ? el("small", { dir: "auto" }, `expected ${expected}`) : null),
      el("td", {}, bar, el("small", {}, far)),
    );
  }

  /** Count a cell as known or unknown; the other cells are judged without unknown cells. */
  #know(name, isKnown) {
    const { row } = this.explorer;
    row.without = row.without.filter((other) => other !== name);
    if (!isKnown) row.without.push(name);
    this.#look(this.asked);
  }

  #edit(name, text) {
    this.explorer.row.cells = { ...this.shown, [name]: cell(text) };
    this.#look({ cells: this.explorer.row.cells });
  }

  /** Draw a row from the joint given the evidence, and show it. */
  async #draw() {
    this.seed = (this.seed ?? 0) + 1;
    const { good, row } = this.explorer;
    await fill(this.answer, this.ask("rows", { evidence: good, n: 1, seed: this.seed }), ({ columns, rows }) => {
      row.cells = Object.fromEntries(columns.map((name, k) => [name, rows[0][k]]));
      row.isDrawn = true;
      return [...this.answer.childNodes];
    });
    if (row.cells) await this.#look({ cells: row.cells });
  }

  async #read() {
    const [file] = this.file.files;
    if (!file) return;
    const [names = [], ...rows] = readCsv(await file.text());
    const known = new Set(this.explorer.columns.map(({ name }) => name));
    if (!rows.length || !names.some((name) => known.has(name))) {
      const text = "This file has no row with a column of the joint. Its first line must name the columns.";
      this.answer.replaceChildren(el("p", { class: "trouble" }, text));
      return;
    }
    const some = names.flatMap((name, k) => (known.has(name) ? [[name, k]] : []));
    const { row } = this.explorer;
    row.rows = rows.map((cells) => Object.fromEntries(some.map(([name, k]) => [name, cell(cells[k] ?? "")])));
    row.count = rows.length;
    row.at = -1;
    this.#go(1);
  }

  #go(by) {
    const { row } = this.explorer;
    row.at = (row.at + by + row.count) % row.count;
    row.cells = row.rows?.[row.at] ?? null;
    row.isDrawn = false;
    this.update();
  }
}

/** The text of a cell; null if it is missing. */
function cell(text) {
  return MISSING.has(text.trim()) ? null : text;
}

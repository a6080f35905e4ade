/** One row of a table, its unlikely cells marked; the table is read here and stays here. */
import { newest } from "./asker.js";
import { readCsv } from "./csv.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { fill } from "./fill.js";

const MISSING = new Set(["", "NA", "NaN", "nan", "null", "None"]);

export class RowPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    explorer.row ??= { rows: [], at: 0, cells: null };
    this.file = el("input", { type: "file", accept: ".csv,text/csv,text/plain", onchange: () => this.#read() });
    this.number = el("span", { role: "status" });
    this.walk = el(
      "span",
      { class: "with", hidden: true },
      el("button", { type: "button", onclick: () => this.#go(-1) }, "before"),
      this.number,
      el("button", { type: "button", onclick: () => this.#go(1) }, "next"),
    );
    this.answer = el("div");
    body.append(
      el(
        "p",
        { class: "lead" },
        "One row as the joint sees it: the unlikely cells are marked, with what was expected in their place. " +
          "Write in the cells, or choose a CSV file: it is read in this page, and only the row that you look at is asked about.",
      ),
      el(
        "p",
        { class: "row-of-buttons" },
        el("label", { class: "file" }, el("span", {}, "table"), this.file),
        this.walk,
        el("button", { type: "button", onclick: () => this.#draw() }, "take a drawn row"),
      ),
      this.answer,
    );
  }

  update() {
    const { rows, at, cells } = this.explorer.row;
    this.walk.hidden = !rows.length;
    this.number.textContent = rows.length ? `row ${count(at + 1)} of ${count(rows.length)}` : "";
    return cells ? this.#look() : this.#draw();
  }

  /** Ask about the row at hand. */
  #look() {
    return fill(this.answer, this.ask("row", { cells: this.explorer.row.cells }), (answer) => this.#show(answer));
  }

  #show({ log_density: log, cells }) {
    const worst = Math.max(...cells.map(({ unlikely }) => unlikely ?? 0), 1e-9);
    const lines = cells.map(({ name, text, unlikely, expected }) => {
      const isOdd = (unlikely ?? 0) > Math.max(2, 0.25 * worst);
      const field = el("input", {
        type: "text",
        dir: "auto",
        value: text ?? "",
        placeholder: "missing",
        spellcheck: "false",
        "aria-label": name,
        onchange: () => this.#edit(name, field.value),
      });
      const bar = el("span", { class: "weight", "aria-hidden": "true" }, el("i"));
      bar.firstChild.style.width = `${Math.max(0, Math.min(100, (100 * (unlikely ?? 0)) / Math.max(worst, 4)))}%`;
      return el(
        "tr",
        { class: isOdd ? "odd" : "" },
        el("th", { scope: "row", dir: "auto" }, name),
        el("td", {}, field),
        el(
          "td",
          { class: "amount" },
          bar,
          el("span", {}, unlikely === null ? "" : unlikely.toFixed(1).replace("-", "−")),
        ),
        el("td", { dir: "auto" }, expected ?? ""),
      );
    });
    const head = el(
      "thead",
      {},
      el(
        "tr",
        {},
        ...["column", "value", "unlikely (nats)", "expected"].map((text) => el("th", { scope: "col" }, text)),
      ),
    );
    return [
      el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "the row" },
        el("table", { class: "one-row" }, head, el("tbody", {}, ...lines)),
      ),
      el("p", { class: "note" }, `log-density ${log === null ? "−∞" : log.toFixed(2).replace("-", "−")}`),
    ];
  }

  #edit(name, text) {
    this.explorer.row.cells = { ...this.explorer.row.cells, [name]: cell(text) };
    this.#look();
  }

  /** A row that the joint draws, where there is no table. */
  async #draw() {
    this.seed = (this.seed ?? 0) + 1;
    const drawn = await this.explorer.source
      .ask("rows", { evidence: this.explorer.good, n: 1, seed: this.seed })
      .catch((error) => {
        this.answer.replaceChildren(el("p", { class: "trouble" }, error.message));
        return null;
      });
    if (!drawn) return;
    this.explorer.row.cells = Object.fromEntries(drawn.columns.map((name, k) => [name, cell(drawn.rows[0][k] ?? "")]));
    await this.#look();
  }

  async #read() {
    const [file] = this.file.files;
    if (!file) return;
    const [names, ...rows] = readCsv(await file.text());
    const known = new Set(this.explorer.columns.map(({ name }) => name));
    if (!rows.length || !names.some((name) => known.has(name))) {
      this.answer.replaceChildren(
        el(
          "p",
          { class: "trouble" },
          "This file has no row with a column of the joint: its first line is to name the columns.",
        ),
      );
      return;
    }
    const row = this.explorer.row;
    row.rows = rows.map((cells) =>
      Object.fromEntries(names.flatMap((name, k) => (known.has(name) ? [[name, cell(cells[k] ?? "")]] : []))),
    );
    row.at = -1;
    this.#go(1);
  }

  #go(by) {
    const row = this.explorer.row;
    row.at = (row.at + by + row.rows.length) % row.rows.length;
    row.cells = row.rows[row.at];
    this.update();
  }
}

/** The text of a cell; null if it is missing. */
function cell(text) {
  return MISSING.has(text.trim()) ? null : text;
}

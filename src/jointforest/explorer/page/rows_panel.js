/** Rows drawn given the evidence, or those of the table that meet it; sorted by any column, also as a file. */
import { newest } from "./asker.js";
import { download } from "./clipboard.js";
import { el, focusedNear, mark, named, say } from "./dom.js";
import { fill } from "./fill.js";
import { count } from "./format.js";

const SHOWN = 20;
const MOST = 1000;
/** A cell with more letters may be cut off, so a tooltip shows it in full. */
const LONG = 24;
const LEADS = {
  joint: "Rows drawn from the joint given the evidence. They are not rows of the table.",
  table: "Rows of the table that meet the evidence. A number opens its row.",
};

export class RowsPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.seed = 0;
    this.n = SHOWN;
    this.of = explorer.table.rows === null ? "joint" : "table";
    this.sort = { place: null, descending: false };
    this.count = el("input", {
      type: "number",
      min: 1,
      max: 100_000,
      value: 1000,
      "aria-label": "number of rows in the file",
    });
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "rows" });
    this.said = el("p", { class: "trouble", role: "status" });
    this.lead = el("p", { class: "lead" });
    const button = (text, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, text);
    this.kinds = ["table", "joint"].map((of) => button(of === "table" ? "of the table" : "drawn", () => this.#show({ of }), { "data-of": of }));
    this.again = button("draw again", () => this.#show({ seed: this.seed + 1 }));
    this.more = button("show more", () => this.#show({ n: Math.min(MOST, 5 * this.n) }));
    body.append(
      this.lead,
      el(
        "p",
        { class: "row-of-buttons" },
        explorer.table.rows === null ? null : el("span", { class: "choice", role: "group", "aria-label": "which rows" }, ...this.kinds),
        this.again,
        el("span", { class: "with" }, this.count, button("download CSV", () => this.#save())),
      ),
      this.said,
      this.table,
      this.more,
    );
  }

  #show(change) {
    Object.assign(this, change);
    return this.update();
  }

  get #body() {
    const { place: sort, descending } = this.sort;
    return { evidence: this.explorer.good, table: this.of === "table", seed: this.seed, sort, descending };
  }

  update() {
    for (const kind of this.kinds) mark(kind, "aria-pressed", kind.dataset.of === this.of);
    say(this.lead, LEADS[this.of]);
    this.again.hidden = this.of === "table";
    return fill(this.table, this.ask("rows", { ...this.#body, n: this.n }), (answer) => this.#filled(answer));
  }

  #filled({ columns, rows, numbers, total }) {
    const focused = focusedNear(this.table)?.dataset.sort;
    if (focused !== undefined) queueMicrotask(() => this.table.querySelector(`[data-sort="${focused}"]`)?.focus());
    if (numbers) say(this.lead, `${count(total)} ${LEADS.table.replace(/^R/, "r")}`);
    this.more.hidden = !numbers || rows.length >= Math.min(total, MOST);
    const open = (at) => el("button", { type: "button", class: "quiet", "aria-label": `open row ${at + 1}`, onclick: () => this.explorer.openRow(at) }, count(at + 1));
    const cell = (text) => el("td", { dir: "auto", title: text?.length > LONG ? text : null }, text ?? "");
    return [
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, numbers ? el("th", { scope: "col" }, "row") : null, ...columns.map((name, place) => this.#head(name, place)))),
        el("tbody", {}, ...rows.map((cells, k) => el("tr", {}, numbers ? el("td", {}, open(numbers[k])) : null, ...cells.map(cell)))),
      ),
    ];
  }

  /** The head of a column: a click sorts by it, another one turns the order round, a third one takes it back. */
  #head(name, place) {
    const { place: by, descending } = this.sort;
    const isBy = place === by;
    const next = isBy && descending ? { place: null, descending: false } : { place, descending: isBy };
    const arrow = el("span", { "aria-hidden": "true" }, isBy ? (descending ? " ▾" : " ▴") : "");
    const button = el("button", { type: "button", class: "sort", "data-sort": place, title: `sort by ${name}`, onclick: () => this.#show({ sort: next }) }, named(name), arrow);
    return el("th", { dir: "auto", scope: "col", "aria-sort": isBy ? (descending ? "descending" : "ascending") : "none" }, button);
  }

  async #save() {
    const n = Math.min(100_000, Math.max(1, Math.round(Number(this.count.value)) || 1));
    this.said.textContent = "";
    try {
      const text = await this.explorer.source.ask("csv", { ...this.#body, n });
      download(text, `${this.explorer.table.title.replace(/\.joint$/, "")}-rows.csv`, "text/csv");
    } catch (error) {
      this.said.textContent = error.message;
    }
  }
}

/** Rows drawn given the evidence, also as a file. */
import { newest } from "./asker.js";
import { download } from "./clipboard.js";
import { el, named } from "./dom.js";
import { fill } from "./fill.js";

const SHOWN = 20;
/** A cell with more letters may be cut off, so a tooltip shows it in full. */
const LONG = 24;

export class RowsPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.seed = 0;
    this.count = el("input", {
      type: "number",
      min: 1,
      max: 100_000,
      value: 1000,
      "aria-label": "number of rows in the file",
    });
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "rows drawn" });
    this.said = el("p", { class: "trouble", role: "status" });
    body.append(
      el("p", { class: "lead" }, "Rows drawn from the joint given the evidence. They are not rows of the table."),
      el(
        "p",
        { class: "row-of-buttons" },
        el(
          "button",
          {
            type: "button",
            onclick: () => {
              this.seed += 1;
              this.update();
            },
          },
          "draw again",
        ),
        el(
          "span",
          { class: "with" },
          this.count,
          el("button", { type: "button", onclick: () => this.#save() }, "download CSV"),
        ),
      ),
      this.said,
      this.table,
    );
  }

  update() {
    const body = { evidence: this.explorer.good, n: SHOWN, seed: this.seed };
    return fill(this.table, this.ask("rows", body), ({ columns, rows }) => [
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ...columns.map((name) => el("th", { dir: "auto", scope: "col", title: name }, named(name))))),
        el(
          "tbody",
          {},
          ...rows.map((cells) => el("tr", {}, ...cells.map((text) => el("td", { dir: "auto", title: text?.length > LONG ? text : null }, text ?? "")))),
        ),
      ),
    ]);
  }

  async #save() {
    const n = Math.min(100_000, Math.max(1, Math.round(Number(this.count.value)) || 1));
    this.said.textContent = "";
    try {
      const text = await this.explorer.source.ask("csv", { evidence: this.explorer.good, n, seed: this.seed });
      download(text, `${this.explorer.table.title.replace(/\.joint$/, "")}-rows.csv`, "text/csv");
    } catch (error) {
      this.said.textContent = error.message;
    }
  }
}

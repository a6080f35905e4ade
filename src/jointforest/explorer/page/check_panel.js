/** Cells of the table that are probably wrong: each is accepted or rejected, and those accepted are saved as a file. */
import { newest } from "./asker.js";
import { download } from "./clipboard.js";
import { el, named, say } from "./dom.js";
import { fill } from "./fill.js";
import { count, percent } from "./format.js";

const COLUMNS = ["row", "column", "value", "p_wrong", "best", "p_best", "reason"];

export class CheckPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.list = el("ol", { class: "suspects", onkeydown: (event) => this.#key(event) });
    this.answer = el("div");
    this.said = el("p", { class: "note", role: "status" });
    const button = (text, onclick) => el("button", { type: "button", onclick }, text);
    this.undo = button("undo the last decision", () => this.#undo());
    this.save = button("download changes", () => this.#save());
    body.append(
      el(
        "p",
        { class: "lead" },
        "Cells that are probably wrong, and what they probably should be. Each decision changes what is said of the other " +
          "cells of its row. Keys: A accepts the change, R rejects it, arrows move.",
      ),
      el("p", { class: "row-of-buttons" }, this.undo, this.save),
      this.said,
      this.answer,
    );
  }

  update() {
    if (this.explorer.checked) return this.answer.replaceChildren(...this.#show());
    return fill(this.answer, this.ask("check", {}), (found) => {
      this.explorer.checked = { ...found, decided: [] };
      return this.#show();
    });
  }

  #show() {
    const { cells, decided, notes, left_out: out } = this.explorer.checked;
    const accepted = decided.filter((cell) => cell.isAccepted).length;
    say(this.said, `${count(cells.length)} to decide, ${count(accepted)} accepted, ${count(decided.length - accepted)} rejected.`);
    this.undo.disabled = !decided.length;
    this.save.disabled = !accepted;
    this.list.replaceChildren(...cells.map((cell) => this.#line(cell)));
    const aside = Object.entries(out).map(([name, why]) => `Not checked: column “${name}” ${why}.`);
    return [
      ...notes.map((text) => el("p", { class: "note", dir: "auto" }, `${text}.`)),
      cells.length ? this.list : el("p", { class: "note" }, "No cell is more probably wrong than right."),
      ...aside.map((text) => el("p", { class: "note", dir: "auto" }, text)),
    ];
  }

  #line(cell) {
    const { row, column, value, best, reason } = cell;
    const where = `${column} of row ${count(row + 1)}`;
    const decide = (isAccepted, text) =>
      el("button", { type: "button", "aria-label": `${text} the change of ${where}`, disabled: isAccepted && !isChange(cell), onclick: () => this.#decide(cell, isAccepted) }, text);
    const open = () => this.explorer.openRow(row);
    const shown = (text) => (text === null ? "missing" : named(text));
    return el(
      "li",
      {},
      el("button", { type: "button", class: "quiet", "aria-label": `open row ${row + 1}`, onclick: open }, `row ${count(row + 1)}`),
      el("b", { dir: "auto" }, named(column)),
      el("span", { class: "change", dir: "auto" }, el("s", {}, shown(value)), " → ", el("b", {}, isChange(cell) ? best : "unknown")),
      el("small", { dir: "auto" }, `wrong with probability ${percent(cell.p_wrong)}; ${reason}`),
      el("span", { class: "with" }, decide(true, "accept"), decide(false, "reject")),
    );
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const lines = [...this.list.children];
    const at = lines.findIndex((line) => line.contains(event.target));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    const key = event.key.toLowerCase();
    if (to !== undefined) this.#focus(to);
    else if (key === "a" && isChange(this.explorer.checked.cells[at])) this.#decide(this.explorer.checked.cells[at], true);
    else if (key === "r") this.#decide(this.explorer.checked.cells[at], false);
    else return;
    event.preventDefault();
  }

  /** Focus a line; the nearest one of those there are. */
  #focus(at) {
    const lines = this.list.children;
    lines[Math.min(lines.length - 1, Math.max(0, at))]?.querySelector(".with button:not(:disabled)").focus();
  }

  async #decide(cell, isAccepted) {
    const { checked } = this.explorer;
    const at = checked.cells.indexOf(cell);
    checked.decided.push({ ...cell, isAccepted });
    checked.cells.splice(at, 1);
    this.update();
    this.#focus(at);
    await this.#follow(cell.row, at);
  }

  async #undo() {
    const { row } = this.explorer.checked.decided.pop();
    await this.#follow(row);
  }

  /** Ask anew for the cells of a row, given the decisions about it. */
  async #follow(row, at = null) {
    const { checked } = this.explorer;
    const decided = checked.decided.filter((cell) => cell.row === row);
    const right = Object.fromEntries(decided.map(({ column, value, best, isAccepted }) => [column, isAccepted ? best : value]));
    try {
      const { cells } = await this.explorer.source.ask("check", { row, right });
      if (decided.length !== checked.decided.filter((cell) => cell.row === row).length) return; // another decision since
      checked.cells = [...checked.cells.filter((cell) => cell.row !== row), ...cells].sort((a, b) => b.p_wrong - a.p_wrong);
      const hasFocus = this.list.contains(this.list.getRootNode().activeElement);
      this.update();
      if (hasFocus) this.#focus(at ?? 0);
    } catch (error) {
      say(this.said, error.message);
    }
  }

  /** Save the accepted changes, with the columns of `jointforest check`. */
  #save() {
    const { table, checked } = this.explorer;
    const cell = (x) => (/[",\r\n]/.test(x ?? "") ? `"${String(x).replaceAll('"', '""')}"` : (x ?? ""));
    const lines = checked.decided.filter((one) => one.isAccepted).map((one) => COLUMNS.map((name) => cell(one[name])).join(","));
    download(`${[COLUMNS.join(","), ...lines].join("\n")}\n`, `${table.title.replace(/\.joint$/, "")}-changes.csv`, "text/csv");
  }
}

/** Whether there is a better value than that of the cell. */
const isChange = ({ value, best }) => best !== null && best !== value;

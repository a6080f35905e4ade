/** A map of the columns: arcs join those that depend on each other most; and what would move a chosen one most. */
import { newest } from "./asker.js";
import { breakable, el, mark, named, svg } from "./dom.js";
import { fill } from "./fill.js";
import { bits, percent, writer } from "./format.js";
import { spread, stepBars } from "./reasons_panel.js";
import { labelOf } from "./labels.js";

const MOST = 60;
const [ROW, WIDE, THICK] = [30, 110, 7]; // pixels: of a line, of the arcs, of the thickest one

export class MapPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.askMoves = newest(explorer.source);
    explorer.mapped ??= { column: null, level: null };
    this.map = el("div");
    this.level = el("select", { "aria-label": "level", onchange: () => this.#choose(explorer.mapped.column, Number(this.level.value)) });
    this.of = el("label", { hidden: true }, el("span", {}, "level"), this.level);
    this.answer = el("div");
    body.append(
      el("p", { class: "lead" }, "Arcs join the columns that depend on each other most, given the evidence: the thicker, the more bits. Choose a column."),
      this.map,
      el("p", { class: "row-of-buttons" }, this.of),
      this.answer,
    );
  }

  update() {
    const { grid, mapped, columns } = this.explorer;
    const seen = [...grid.children].filter((card) => !card.hidden).map(({ place }) => place);
    if (seen.length < 2) return this.map.replaceChildren(el("p", { class: "note" }, "A map needs two cards that are shown."));
    const some = seen.slice(0, MOST);
    if (mapped.column !== null && mapped.column < columns.length) this.#ask();
    return fill(this.map, this.ask("depends", { evidence: this.explorer.good, columns: some }), (found) => this.#show(found, seen.length));
  }

  #show({ order, edges }, all) {
    const { columns } = this.explorer;
    const at = new Map(order.map((place, k) => [place, ROW * (k + 0.5)]));
    const most = Math.max(...edges.map(([, , amount]) => amount), 1e-12);
    const arcs = edges.map(([a, b, amount]) => {
      const [from, to] = [at.get(a), at.get(b)];
      const reach = WIDE - Math.min(WIDE - THICK, 14 + 0.32 * Math.abs(to - from));
      const arc = svg("path", { class: "arc", d: `M${WIDE} ${from}C${reach} ${from} ${reach} ${to} ${WIDE} ${to}`, "stroke-width": Math.max(1, (THICK * amount) / most) });
      arc.append(svg("title", {}, `${columns[a].name} and ${columns[b].name}: ${bits(amount)} bits`));
      return arc;
    });
    const picture = svg("svg", { class: "arcs", viewBox: `0 0 ${WIDE} ${ROW * order.length}`, width: WIDE, height: ROW * order.length, "aria-hidden": "true" }, ...arcs);
    this.buttons = order.map((place) =>
      el("button", { type: "button", class: "quiet", title: columns[place].name, dir: "auto", "data-place": place, onclick: () => this.#choose(place) }, named(columns[place].name)),
    );
    this.edges = edges.map((edge, k) => [...edge, arcs[k]]);
    this.#mark();
    const left = all - order.length;
    return [
      el("div", { class: "column-map" }, picture, el("ol", {}, ...this.buttons.map((button) => el("li", {}, button)))),
      edges.length ? null : el("p", { class: "note" }, "Given the evidence, no two columns depend on each other by as much as 0.01 bits."),
      left ? el("p", { class: "note" }, `${left} more columns are shown as cards. Search for a name, or hide cards, to choose others.`) : null,
    ].filter(Boolean);
  }

  /** Mark the chosen column and its arcs. */
  #mark() {
    const { column } = this.explorer.mapped;
    for (const button of this.buttons ?? []) mark(button, "aria-pressed", Number(button.dataset.place) === column);
    for (const [a, b, , arc] of this.edges ?? []) arc.classList.toggle("on", a === column || b === column);
  }

  #choose(column, level = null) {
    Object.assign(this.explorer.mapped, { column, level });
    this.#mark();
    return this.#ask();
  }

  #ask() {
    const { good, mapped, columns } = this.explorer;
    return fill(this.answer, this.askMoves("moves", { evidence: good, ...mapped }), (found) => this.#moves(found, columns[mapped.column]));
  }

  #moves({ level, value, columns: found }, column) {
    const { columns } = this.explorer;
    this.of.hidden = !column.levels;
    if (column.levels) {
      const names = column.levels.map((_, k) => labelOf(column, k));
      this.level.replaceChildren(...names.map((name, k) => el("option", { value: k, selected: k === level, dir: "auto" }, name)));
    }
    const joined = this.edges?.filter(([a, b]) => columns[a] === column || columns[b] === column).sort((x, y) => y[2] - x[2]) ?? [];
    const others = joined.map(([a, b, amount]) => `${named(columns[columns[a] === column ? b : a].name)} ${bits(amount)} bits`);
    const what = column.levels ? `the probability of ${column.name} = ${labelOf(column, level)}` : `the mean of ${column.name}`;
    const write = column.levels ? percent : writer(column).mean;
    const lines = found.map(({ column: place, low, high }) => ({ name: columns[place].name, from: low, to: high, kind: "base", text: `${write(low)} to ${write(high)}` }));
    return [
      el("h3", { dir: "auto" }, ...breakable(`What would move ${what} most`)),
      lines.length ? stepBars(column, spread([Math.min(...lines.map(({ from }) => from)), Math.max(...lines.map(({ to }) => to))]), lines, value) : null,
      el("p", { class: "note" }, `It is ${write(value)} now. A bar goes from the lowest to the highest value that it can take if the column becomes known. The column with the greatest expected change comes first.`),
      others.length ? el("p", { class: "note", dir: "auto" }, `Mutual information with ${others.join(", ")}.`) : null,
    ].filter(Boolean);
  }
}

/** The exact joint distribution of two columns given what is known, as a map of cells. */
import { newest } from "./asker.js";
import { el, svg } from "./dom.js";
import { bits, percent, writer } from "./format.js";
import { conditionOn, interval } from "./state.js";
import { labelOf } from "./typed.js";
import { fill } from "./fill.js";

const MOST = 30; // levels a side that have a cell of their own in the table below the map

export class PairPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    const pair = explorer.pair?.every((k) => k < explorer.columns.length) ? explorer.pair : this.#mostMoved();
    this.selects = [0, 1].map((which) => this.#select(which ? "down" : "across", pair[which] ?? 0));
    this.map = el("div");
    body.append(el("p", { class: "row-of-buttons" }, ...this.selects), this.map);
  }

  /** The two columns that moved most, of those that nothing is said of. */
  #mostMoved() {
    const { columns, answer, good } = this.explorer;
    const rank = (k) => (conditionOn(good, k) ? -1 : answer.columns[k].moved);
    return columns
      .map((_, k) => k)
      .sort((a, b) => rank(b) - rank(a) || a - b)
      .slice(0, 2)
      .sort((a, b) => a - b);
  }

  #select(what, chosen) {
    const options = this.explorer.columns.map(({ name }, k) =>
      el("option", { value: k, selected: k === chosen, dir: "auto" }, name),
    );
    return el("label", {}, el("span", {}, what), el("select", { onchange: () => this.update() }, ...options));
  }

  update() {
    const places = this.selects.map((label) => Number(label.lastChild.value));
    this.explorer.pair = places;
    if (places[0] === places[1]) {
      this.map.replaceChildren(el("p", { class: "note" }, "Choose two different columns."));
      return undefined;
    }
    const body = { evidence: this.explorer.good, columns: places, bins: 20 };
    return fill(this.map, this.ask("pair", body), (answer) => this.#show(answer, places));
  }

  #show({ a, b, mass, information, correlation }, places) {
    const sides = [this.#side(a, places[0]), this.#side(b, places[1])];
    const tallest = Math.max(...mass.flat(), 1e-300);
    const said = [
      information === null || information === undefined ? null : `They share ${bits(information)} bits`,
      correlation === null || correlation === undefined
        ? null
        : `correlation ${correlation.toFixed(2).replace("-", "−")}`,
    ]
      .filter(Boolean)
      .join(", ");
    const told = el("p", { class: "note told", "aria-hidden": "true" }, "\u00a0");
    const label = `${sides[0].name} across, ${sides[1].name} down. ${said}`;
    const map = svg("svg", {
      class: "map",
      viewBox: `0 0 ${sides[0].n} ${sides[1].n}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    });
    mass.forEach((column, i) =>
      column.forEach((share, j) => map.append(this.#cell(sides, i, j, share, tallest, told, places))),
    );
    const down = [...sides[1].ends].reverse();
    const grid = el(
      "div",
      { class: "map-grid" },
      el("div", { class: "map-down", "aria-hidden": "true" }, ...down.map((text) => el("span", { dir: "auto" }, text))),
      map,
      el("span"),
      el(
        "div",
        { class: "map-across", "aria-hidden": "true" },
        ...sides[0].ends.map((text) => el("span", { dir: "auto" }, text)),
      ),
    );
    return [grid, told, el("p", {}, said), this.#asTable(sides, mass)];
  }

  /** What one side of the map says. */
  #side(side, place) {
    const column = this.explorer.columns[place];
    const labels = side.labels ?? (side.edges ? null : column.levels.map((_, k) => labelOf(column, k)));
    const n = labels ? labels.length : side.edges.length - 1;
    const write = labels ? null : writer({ ...column, edges: side.edges });
    const text = (k) => (labels ? labels[k] : `${write.value(side.edges[k])} to ${write.value(side.edges[k + 1])}`);
    const ends = labels
      ? [labels[0], ...(n > 1 ? [labels[n - 1]] : [])]
      : [write.tick(side.edges[0]), write.tick(side.edges[n])];
    return {
      name: column.name,
      n,
      text,
      ends,
      edges: side.edges,
      isWhole: labels && labels.length === column.levels?.length,
    };
  }

  #cell(sides, i, j, share, tallest, told, places) {
    const y = sides[1].edges ? sides[1].n - 1 - j : j;
    const cell = svg("rect", { x: i, y, width: 1.02, height: 1.02, class: "cell" });
    cell.style.fillOpacity = Math.sqrt(share / tallest).toFixed(3);
    const text = `${sides[0].text(i)} and ${sides[1].text(j)}: ${percent(share)}`;
    cell.addEventListener("pointerenter", () => {
      told.textContent = text;
    });
    cell.addEventListener("click", () => this.#choose(sides, [i, j], places));
    return cell;
  }

  /** A click on a cell is evidence on both columns. */
  #choose(sides, cell, places) {
    const conditions = sides.map((side, which) => {
      const column = this.explorer.columns[places[which]];
      const half = 0.5 * (column.step ?? 0);
      const k = cell[which];
      if (!side.edges) return side.isWhole ? { column: places[which], levels: [k] } : null;
      return { column: places[which], ...interval(side.edges[k] + half, side.edges[k + 1] - half) };
    });
    if (conditions.every(Boolean))
      this.map.dispatchEvent(new CustomEvent("condition", { detail: { conditions }, bubbles: true }));
  }

  /** The same numbers for those who do not see the map. */
  #asTable(sides, mass) {
    const across = Math.min(sides[0].n, MOST);
    const down = Math.min(sides[1].n, MOST);
    const head = el(
      "tr",
      {},
      el("td"),
      ...Array.from({ length: across }, (_, i) => el("th", { scope: "col", dir: "auto" }, sides[0].text(i))),
    );
    const lines = Array.from({ length: down }, (_, j) =>
      el(
        "tr",
        {},
        el("th", { scope: "row", dir: "auto" }, sides[1].text(j)),
        ...Array.from({ length: across }, (__, i) => el("td", {}, percent(mass[i][j]))),
      ),
    );
    return el(
      "details",
      {},
      el("summary", {}, "as a table"),
      el(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "both columns as a table" },
        el("table", {}, el("thead", {}, head), el("tbody", {}, ...lines)),
      ),
    );
  }
}

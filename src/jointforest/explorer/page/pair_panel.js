/** The exact joint distribution of two columns given the evidence, as a map of cells. */
import { newest } from "./asker.js";
import { el, focusedNear, mark, named, say, svg } from "./dom.js";
import { bits, count, percent, writer } from "./format.js";
import { areFewCells } from "./scale.js";
import { conditionOn, interval } from "./state.js";
import { fill } from "./fill.js";

/** Levels of a side that have cells of their own; the others share one. */
const MOST = 24;
/** Up to so many levels all are written beside the map. */
const ACROSS = 5;
const ALL = 24;

export class PairPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    const pair = explorer.pair?.every((k) => k < explorer.columns.length) ? explorer.pair : this.#mostMoved();
    this.selects = [0, 1].map((which) => this.#select(which ? "down" : "across", pair[which] ?? 0));
    this.map = el("div");
    body.append(el("p", { class: "row-of-buttons" }, ...this.selects), this.map);
  }

  /** The two columns that moved most, of those without evidence, and with few enough levels for cells of their own. */
  #mostMoved() {
    const { columns, answer, good } = this.explorer;
    const isLong = (k) => columns[k].levels?.length > MOST;
    const rank = (k) => (conditionOn(good, k) ? -2 : isLong(k) ? -1 : answer.columns[k].moved);
    return columns
      .map((_, k) => k)
      .sort((a, b) => rank(b) - rank(a) || a - b)
      .slice(0, 2)
      .sort((a, b) => a - b);
  }

  #select(what, chosen) {
    const options = this.explorer.columns.map(({ name }, k) =>
      el("option", { value: k, selected: k === chosen, dir: "auto" }, named(name)),
    );
    return el("label", {}, el("span", {}, what), el("select", { onchange: () => this.update() }, ...options));
  }

  update() {
    const places = this.selects.map((label) => Number(label.lastChild.value));
    if (places.some((place, k) => place !== this.explorer.pair?.[k])) this.at = null;
    this.explorer.pair = places;
    if (places[0] === places[1]) {
      this.map.replaceChildren(el("p", { class: "note" }, "Choose two different columns."));
      return undefined;
    }
    const body = { evidence: this.explorer.good, columns: places, bins: 20 };
    return fill(this.map, this.ask("pair", body), (answer) => this.#show(answer, places));
  }

  #show(answer, places) {
    const { information, in_table: inTable, correlation } = answer;
    const across = heaviest(answer.a.labels, answer.mass);
    const down = heaviest(answer.b.labels, turned(across.mass));
    const sides = [
      this.#side(answer.a, across, places[0], "across"),
      this.#side(answer.b, down, places[1], "down"),
    ];
    const mass = turned(down.mass);
    const tallest = Math.max(...mass.flat(), 1e-300);
    const said = [
      information === null
        ? null
        : information < 0.005
          ? "Nearly independent"
          : `Mutual information ${bits(information)} bits (0: independent)`,
      inTable == null ? null : `in the rows of the table ${bits(inTable)} bits`,
      correlation === null ? null : `correlation ${correlation.toFixed(2).replace("-", "−")}`,
    ]
      .filter(Boolean)
      .join(", ");
    const told = el("p", { class: "note told", "aria-hidden": "true" }, "\u00a0");
    const label = `${sides[0].name} across, ${sides[1].name} down. ${said}. Arrow keys move between cells, Enter gives the cell as evidence.`;
    const map = svg("svg", {
      class: "map",
      viewBox: `0 0 ${sides[0].n} ${sides[1].n}`,
      preserveAspectRatio: "none",
      role: "application",
      "aria-roledescription": "heat map",
      tabindex: 0,
      "aria-label": label,
    });
    mass.forEach((column, i) =>
      column.forEach((share, j) => map.append(this.#cell(sides, i, j, share, tallest, told, places))),
    );
    const heard = el("p", { class: "unseen", role: "status" });
    this.#addCursor(map, { sides, mass, places, told, heard });
    const marks = (side, what) =>
      el(
        "div",
        {
          class: `map-${what}${side.isEach ? " each" : ""}${side.isEach && side.n > ACROSS ? " many" : ""}`,
          "aria-hidden": "true",
        },
        ...side.marks.map((text) => el("span", { dir: "auto", title: text }, text)),
      );
    const grid = el("div", { class: "map-grid" }, marks(sides[1], "down"), map, el("span"), marks(sides[0], "across"));
    const legend = el("p", { class: "map-legend" }, "0%", el("i", { "aria-hidden": "true" }), `${percent(tallest)} of the rows in one cell`);
    return [grid, legend, told, heard, el("p", {}, said), this.#asTable(sides, mass)];
  }

  /** A cell that the arrows move, and what it says; it stays where it was when the map is drawn anew. */
  #addCursor(map, { sides, mass, places, told, heard }) {
    const cursor = svg("rect", { class: "cursor", width: 1, height: 1 });
    map.append(cursor);
    const [n, m] = [sides[0].n, sides[1].n];
    const flip = (j) => (sides[1].edges ? m - 1 - j : j); // greater numbers lie higher
    const go = (x, y) => {
      this.at = [Math.min(n - 1, Math.max(0, x)), Math.min(m - 1, Math.max(0, y))];
      mark(cursor, "x", this.at[0]);
      mark(cursor, "y", this.at[1]);
      const [i, j] = [this.at[0], flip(this.at[1])];
      say(told, textOf(sides, i, j, mass[i][j]));
      return told.textContent;
    };
    const keys = {
      ArrowLeft: ([x, y]) => [x - 1, y],
      ArrowRight: ([x, y]) => [x + 1, y],
      ArrowUp: ([x, y]) => [x, y - 1],
      ArrowDown: ([x, y]) => [x, y + 1],
      Home: ([, y]) => [0, y],
      End: ([, y]) => [n - 1, y],
      PageUp: ([x]) => [x, 0],
      PageDown: ([x]) => [x, m - 1],
    };
    map.addEventListener("focus", () => {
      const heaviestCell = () => {
        const all = mass.flatMap((column, i) => column.map((share, j) => [share, i, flip(j)]));
        return all.reduce((best, one) => (one[0] > best[0] ? one : best)).slice(1);
      };
      say(heard, go(...(this.at ?? heaviestCell())));
    });
    map.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.at) return;
      if (event.key === "Enter" || event.key === " ") this.#choose(sides, [this.at[0], flip(this.at[1])], places);
      else if (keys[event.key]) say(heard, go(...keys[event.key](this.at)));
      else return;
      event.preventDefault();
    });
    if (this.map.contains(focusedNear(this.map)) && focusedNear(this.map).matches(".map"))
      queueMicrotask(() => map.focus({ preventScroll: true }));
  }

  /** What one side of the map says: of levels those kept, of numbers the ends of bins; greater numbers lie higher. */
  #side({ edges }, { labels, kept }, place, where) {
    const column = this.explorer.table.columns[place];
    const write = labels ? null : writer({ ...column, edges });
    const n = labels ? labels.length : edges.length - 1;
    const half = 0.5 * (column.step ?? 0);
    const number = (k) => {
      const [from, to] = [edges[k] + half, edges[k + 1] - half].map((x) => write.value(x));
      if (k === 0 && column.edges[0] < edges[0]) return `up to ${to}`;
      if (k === n - 1 && column.edges.at(-1) > edges[n]) return `${from} and more`;
      return from === to ? from : `${from} to ${to}`;
    };
    const text = (k) => (labels ? labels[k] : number(k));
    const isEach = n <= ALL && (Boolean(labels) || areFewCells({ ...column, edges }));
    const all = [...Array(n).keys()].map(text);
    const ends = labels ? [] : [0, n >> 1, n].map((k) => write.tick(edges[k])).filter((_, k) => n % 2 === 0 || k !== 1);
    const inOrder = isEach ? all : ends;
    const marks = labels || where === "across" ? inOrder : inOrder.reverse();
    return { name: column.name, n, text, marks, isEach, edges, kept };
  }

  #cell(sides, i, j, share, tallest, told, places) {
    const y = sides[1].edges ? sides[1].n - 1 - j : j;
    const cell = svg("rect", { x: i, y, width: 1, height: 1, class: "cell" });
    cell.style.fillOpacity = (share / tallest).toFixed(3);
    const text = textOf(sides, i, j, share);
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
      if (!side.edges) return side.kept[k] === null ? null : { column: places[which], levels: [side.kept[k]] };
      return { column: places[which], ...interval(side.edges[k] + half, side.edges[k + 1] - half) };
    });
    if (conditions.every(Boolean))
      this.map.dispatchEvent(new CustomEvent("condition", { detail: { conditions }, bubbles: true }));
  }

  /** The same numbers for those who do not see the map. */
  #asTable([a, b], mass) {
    const heads = mass.map((_, i) => el("th", { scope: "col", dir: "auto" }, a.text(i)));
    const head = el("tr", {}, el("td"), ...heads);
    const lines = mass[0].map((_, j) =>
      el(
        "tr",
        {},
        el("th", { scope: "row", dir: "auto" }, b.text(j)),
        ...mass.map((column) => el("td", {}, percent(column[j]))),
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

/** What a cell says. */
function textOf(sides, i, j, share) {
  return `${sides[0].text(i)} and ${sides[1].text(j)}: ${percent(share)}`;
}

/** Rows of a matrix as columns. */
function turned(matrix) {
  return matrix[0].map((_, k) => matrix.map((row) => row[k]));
}

/**
 * The levels that hold most, in their order, the others together as one; all where they are few, or there are none.
 * @param {string[]|null} labels
 * @param {number[][]} mass - a row a level
 * @returns {{labels: string[]|null, kept: (number|null)[], mass: number[][]}} kept: places of levels, null of others
 */
function heaviest(labels, mass) {
  const all = mass.map((_, k) => k);
  if (!labels || labels.length <= MOST) return { labels, kept: all, mass };
  const total = mass.map((row) => row.reduce((sum, share) => sum + share, 0));
  const kept = all
    .sort((a, b) => total[b] - total[a])
    .slice(0, MOST - 1)
    .sort((a, b) => a - b);
  const isKept = new Set(kept);
  const others = mass[0].map((_, j) => mass.reduce((sum, row, k) => sum + (isKept.has(k) ? 0 : row[j]), 0));
  return {
    labels: [...kept.map((k) => labels[k]), `${count(labels.length - kept.length)} others`],
    kept: [...kept, null],
    mass: [...kept.map((k) => mass[k]), others],
  };
}

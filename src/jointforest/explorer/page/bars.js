/** A bar for each level, given the evidence in front of without it; also a list to choose levels from. */
import { breakable, define, el, freshId, mark, named, say } from "./dom.js";
import { count, percent } from "./format.js";
import { chooseLevel, excludeLevel, toggleLevel } from "./state.js";
import { labelOf } from "./labels.js";

/** Up to so many levels all are shown, in their own order; of more, those that matter most. */
const ALL = 12;
const SOME = 8;
const MORE = 50;

/** Says `choose`, with a condition or null in `detail.condition`, and `detail.live` while the mouse is held. */
export class Bars extends HTMLElement {
  /** @param {import("./state.js").Column} column */
  setColumn(column) {
    this.column = column;
    this.size = column.levels.length;
    this.isLong = this.size > ALL;
    this.most = this.isLong ? SOME : this.size;
    this.found = null;
    this.rows = new Map();
    this.active = -1;
    const label = `levels of ${column.name}`;
    this.list = el("div", {
      role: "listbox",
      class: "levels",
      tabindex: 0,
      "aria-multiselectable": "true",
      "aria-label": label,
    });
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("pointerdown", (event) => this.#press(event));
    this.list.addEventListener("focus", () => this.#activate(this.active < 0 ? this.shown[0] : this.active));
    this.list.addEventListener("blur", () => this.classList.remove("keys"));
    this.append(this.list);
    if (this.isLong) this.#addSearch();
  }

  /**
   * @param {{mass: number[], prior: number[], condition: object|null, live: boolean, top: number, beside: string}} known -
   *   top: the share of a bar over the full width; beside: what the prior is called
   */
  update(known) {
    this.known = known;
    if (!this.shown || (this.isLong && !known.live)) this.#pick();
    this.#draw();
  }

  // ------------------------------------------------------------------------------------------------ which are shown

  #addSearch() {
    this.search = el("input", {
      type: "search",
      class: "find",
      placeholder: "find a level",
      spellcheck: "false",
      "aria-label": `find a level of ${this.column.name}`,
      oninput: () => this.#find(),
    });
    this.others = el("button", { type: "button", class: "others", onclick: () => this.#showMore() });
    this.none = el("span", { role: "status", hidden: true }, "no level has such a name");
    this.append(el("div", { class: "rest" }, this.others, this.none, this.search));
  }

  #find() {
    const word = this.search.value.trim().toLowerCase();
    this.found = word
      ? [...Array(this.size).keys()].filter((k) => labelOf(this.column, k).toLowerCase().includes(word))
      : null;
    this.most = word ? MORE : SOME;
    this.#pick();
    this.#draw();
  }

  #showMore() {
    this.most += MORE;
    this.#pick();
    this.#draw();
  }

  /** Choose the levels to show: all of few; of many those of most mass, and the chosen ones. */
  #pick() {
    const { mass, prior, condition } = this.known;
    const all = this.found ?? [...Array(this.size).keys()];
    if (!this.isLong) this.shown = all;
    else {
      const chosen = new Set(condition?.levels?.length <= SOME ? condition.levels : []);
      const heavy = (k) => (chosen.has(k) ? 2 : 0) + mass[k] + prior[k] * 1e-9;
      const rank = (a, b) => prior[b] - prior[a] || a - b; // so that rows do not change places with the evidence
      this.shown = all.sort((a, b) => heavy(b) - heavy(a) || a - b).slice(0, this.most).sort(rank);
    }
    const keep = new Set(this.shown);
    for (const [k, row] of this.rows)
      if (!keep.has(k)) {
        row.line.remove();
        this.rows.delete(k);
      }
    this.shown.forEach((k, place) => {
      const { line } = this.#row(k);
      const there = this.list.children[place] ?? null;
      if (there !== line) this.list.insertBefore(line, there); // what is put where it was is laid out anew
    });
    if (!keep.has(this.active)) this.#activate(-1);
  }

  #row(k) {
    if (!this.rows.has(k)) {
      const label = el("span", { class: "bar-label", dir: "auto" }, ...breakable(named(labelOf(this.column, k))));
      const fill = el("span", { class: "fill" });
      const ghost = el("span", { class: "ghost" });
      const tick = el("span", { class: "was" });
      const ofRows = el("span", { class: "of-rows", hidden: true });
      const value = el("span", { class: "bar-value" });
      const before = el("span", { class: "unseen" });
      const ways = el(
        "span",
        { class: "ways", "aria-hidden": "true" },
        el("span", { "data-way": "or", title: "add this level (Shift+Enter)" }, "or"),
        el("span", { "data-way": "not", title: "exclude this level (Delete)" }, "not"),
      );
      const line = el(
        "div",
        { role: "option", class: "bar", id: freshId("level"), "aria-selected": "false", "data-level": k },
        label,
        el("span", { class: "track" }, ghost, fill, tick, ofRows),
        value,
        before,
        ways,
      );
      this.rows.set(k, { line, fill, ghost, tick, ofRows, value, before });
    }
    return this.rows.get(k);
  }

  // --------------------------------------------------------------------------------------------------------- drawing

  #draw() {
    const { mass, prior, condition, live, top, rows, beside } = this.known;
    const chosen = new Set(condition?.levels ?? []);
    this.classList.toggle("live", live);
    this.classList.toggle("chosen", chosen.size > 0);
    this.classList.toggle("few", this.size <= 6);
    for (const k of this.shown) {
      const row = this.#row(k);
      const was = Math.min(1, prior[k] / top);
      row.fill.style.transform = `scaleX(${Math.min(1, mass[k] / top)})`;
      row.ghost.style.transform = `scaleX(${was})`;
      row.tick.style.setProperty("--off", was - 1);
      row.ofRows.hidden = !rows;
      row.ofRows.style.setProperty("--off", Math.min(1, (rows?.[k] ?? 0) / top) - 1);
      say(row.value, percent(mass[k]));
      say(row.before, `, ${beside} ${percent(prior[k])}`);
      const inTable = rows ? `, in the table ${percent(rows[k])}` : "";
      mark(row.line, "title", `${labelOf(this.column, k)}: ${percent(mass[k])}, ${beside} ${percent(prior[k])}${inTable}`);
      mark(row.line, "aria-selected", chosen.has(k));
      row.line.classList.toggle("out", chosen.size > 0 && !chosen.has(k));
    }
    if (this.others) this.#drawOthers(mass);
  }

  #drawOthers(mass) {
    const rest = (this.found?.length ?? this.size) - this.shown.length;
    const share = Math.max(0, 1 - this.shown.reduce((sum, k) => sum + mass[k], 0));
    this.others.hidden = rest <= 0;
    this.none.hidden = this.found?.length !== 0;
    say(this.others, this.found ? `${count(rest)} more found` : `${count(rest)} others, ${percent(share)}`);
  }

  // ------------------------------------------------------------------------------------------------------- gestures

  #activate(k) {
    this.rows.get(this.active)?.line.classList.remove("active");
    this.active = k ?? -1;
    const row = this.rows.get(this.active);
    if (row) {
      row.line.classList.add("active");
      this.list.setAttribute("aria-activedescendant", row.line.id);
      row.line.scrollIntoView?.({ block: "nearest" });
    } else this.list.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const place = this.shown.indexOf(this.active);
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: this.shown.length - 1 }[event.key];
    const k = this.active;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined) {
      this.classList.add("keys");
      this.#activate(this.shown[Math.min(this.shown.length - 1, Math.max(0, to))]);
    } else if (event.key === "Escape") this.#say(null);
    else if (k < 0) return;
    else if (event.key === "Enter" || event.key === " ") this.#choose(k, event.shiftKey ? "or" : "only");
    else if (event.key === "+") this.#choose(k, "or");
    else if (event.key === "Delete" || event.key === "-") this.#choose(k, "not");
    else return;
    event.preventDefault();
  }

  #choose(k, way) {
    const condition = this.known.condition?.levels ? this.known.condition : null;
    if (way === "or") this.#say(toggleLevel(condition, k, this.size));
    else if (way === "not") this.#say(excludeLevel(condition, k, this.size));
    else this.#say(chooseLevel(condition, k));
  }

  /** A press is a choice where it is let go; held and moved over others it takes in all between. */
  #press(event) {
    const line = event.target.closest("[data-level]");
    if (!line || event.button !== 0) return;
    const first = Number(line.dataset.level);
    const way =
      event.target.dataset.way ??
      (event.shiftKey || event.ctrlKey || event.metaKey ? "or" : event.altKey ? "not" : "only");
    this.#activate(first);
    let over = first;
    const done = new AbortController();
    const moved = (next) => {
      if (event.pointerType !== "mouse" || !next.buttons) return;
      const under = this.getRootNode().elementFromPoint(next.clientX, next.clientY)?.closest("[data-level]");
      if (!under || !this.contains(under) || Number(under.dataset.level) === over) return;
      over = Number(under.dataset.level);
      this.#say(this.#between(first, over), true);
    };
    const ended = (last) => {
      done.abort();
      if (last.type === "pointercancel") {
        if (over !== first) this.#say(this.#between(first, over));
      } else if (over !== first) this.#say(this.#between(first, over));
      else if (last.composedPath()[0].closest?.("[data-level]") === line) this.#choose(first, way);
    };
    addEventListener("pointermove", moved, { signal: done.signal });
    addEventListener("pointerup", ended, { signal: done.signal });
    addEventListener("pointercancel", ended, { signal: done.signal });
  }

  #between(a, b) {
    const [i, j] = [this.shown.indexOf(a), this.shown.indexOf(b)].sort((x, y) => x - y);
    return { levels: this.shown.slice(i, j + 1).sort((x, y) => x - y) };
  }

  #say(condition, live = false) {
    const all = condition?.levels?.length === this.size;
    this.dispatchEvent(
      new CustomEvent("choose", { detail: { condition: all ? null : condition, live }, bubbles: true }),
    );
  }
}

define("jf-bars", Bars);

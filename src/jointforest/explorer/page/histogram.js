/** A histogram of numbers or dates, given the evidence in front of without it; two handles give an interval. */
import { define, el, mark, svg } from "./dom.js";
import { percent, writer } from "./format.js";
import { glide } from "./motion.js";
import { areFewCells, axis, bars, curve, labelled, later, outline, scaleOf, snap, snapStep, ticks } from "./scale.js";
import { interval } from "./state.js";

const CLICK = 4; // pixels

/** Says `choose`, with a condition or null in `detail.condition`, and `detail.live` while it is dragged. */
export class Histogram extends HTMLElement {
  /** @param {import("./state.js").Column} column */
  setColumn(column) {
    this.column = column;
    this.axis = axis(column.edges);
    this.step = snapStep(column);
    this.write = writer(column);
    this.ends = [null, null];
    this.classList.toggle("survival", this.isSurvival);
    this.#build();
    this.glide = glide((values) => this.#paint(values));
  }

  #build() {
    this.ghost = svg("path", { class: "ghost" });
    this.bars = svg("path", { class: "fill" });
    this.was = svg("path", { class: "was" });
    this.rows = svg("path", { class: "of-rows" });
    this.labels = this.column.edges.slice(1).map(() => el("span", { class: "share", hidden: true }));
    this.picture = svg(
      "svg",
      { class: "plot", viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
      this.ghost,
      this.bars,
      this.was,
      this.rows,
    );
    this.window = el("div", { class: "window", hidden: true });
    this.handles = [this.#handle(0), this.#handle(1)];
    this.readout = el("div", { class: "readout", "aria-hidden": "true", hidden: true });
    this.area = el("div", { class: "area" }, this.picture, this.window, ...this.labels, ...this.handles, this.readout);
    this.area.addEventListener("pointerdown", (event) => this.#press(event));
    this.area.addEventListener("pointermove", (event) => this.#read(this.#shareAt(event)));
    this.area.addEventListener("pointerleave", () => this.#read(null));
    this.handles.forEach((handle, which) => {
      handle.addEventListener("focus", () => this.#readEnd(which));
      handle.addEventListener("blur", () => this.#read(null));
    });
    const marks = ticks(this.column).map((x) => this.#tick(x));
    (this.column.beyond ?? []).forEach((is, which) => is && marks.push(this.#beyond(which)));
    this.nowLine = el("div", { class: "span now" }, el("i"));
    this.wasLine = el("div", { class: "span was" }, el("i"));
    if (this.isSurvival) this.area.append(el("span", { class: "top-share", "aria-hidden": "true" }, "100% without an event"));
    this.append(
      this.area,
      el("div", { class: "axis", "aria-hidden": "true" }, ...marks),
      el("div", { class: "spans", "aria-hidden": "true" }, this.wasLine, this.nowLine),
    );
  }

  #tick(x) {
    const share = this.axis.position(x);
    const mark = el(
      "span",
      { class: share < 0.08 ? "tick first" : share > 0.92 ? "tick last" : "tick" },
      this.write.tick(x),
    );
    mark.style.left = `${100 * share}%`;
    return mark;
  }

  /** Says that the outermost bar also holds what lies beyond the axis. */
  #beyond(which) {
    const comparative = which ? "higher" : "lower";
    const isZoomed = this.column.axis === "zoom";
    const words = isZoomed ? `there are ${comparative} values` : `the ${which ? "last" : "first"} bar also holds all ${comparative} values`;
    return el("span", { class: which ? "beyond high" : "beyond", title: words }, which ? "▸" : "◂");
  }

  #handle(which) {
    return el("div", {
      role: "slider",
      class: "handle",
      tabindex: 0,
      "data-which": which,
      "aria-orientation": "horizontal",
      "aria-label": `${which ? "highest" : "lowest"} ${this.column.name}`,
      "aria-valuemin": this.axis.low,
      "aria-valuemax": this.axis.high,
      onkeydown: (event) => this.#key(event, which),
    });
  }

  // --------------------------------------------------------------------------------------------------------- drawing

  /**
   * @param {{mass: number[], prior: number[], condition: object|null, mean: number|null, low: number|null,
   *   high: number|null, before: object, live: boolean}} known
   */
  update(known) {
    this.known = known;
    const { low = null, high = null } = known.condition ?? {};
    this.ends = [low, high];
    this.classList.toggle("live", known.live);
    this.#place();
    this.#line(this.nowLine, known);
    this.#line(this.wasLine, known.before);
    if (!this.readout.hidden) this.#read(this.readAt);
    const heights = (mass) => (this.isSurvival ? later(mass) : mass.map((share, k) => this.axis.height(share, k)));
    this.glide([...heights(known.mass), ...heights(known.prior)], known.live);
  }

  get isSurvival() {
    return this.column.axis === "survival";
  }

  /** The shares without an event over time: a line given the evidence, an area without it. */
  #paintCurves(now, was) {
    const x = this.column.edges.map((edge) => 100 * this.axis.position(edge));
    mark(this.ghost, "d", curve(this.column, x, was, true));
    mark(this.bars, "d", curve(this.column, x, now, false));
  }

  /** Bars given the evidence over those without it, on one scale; the shares of those that need them. */
  #paint(values) {
    const n = this.column.edges.length - 1;
    const [now, was] = [values.subarray(0, n), values.subarray(n)];
    if (this.isSurvival) return this.#paintCurves(now, was);
    const rows = this.known.rows?.map((share, k) => this.axis.height(share, k)) ?? null;
    const scale = scaleOf(Array.from(now, (height, k) => Math.max(height, was[k], rows?.[k] ?? 0)));
    const x = this.column.edges.map((edge) => 100 * this.axis.position(edge));
    for (const path of [this.ghost, this.was]) mark(path, "d", outline(x, was, scale.top));
    mark(this.bars, "d", bars(x, now, scale.top));
    mark(this.rows, "d", rows ? outline(x, rows, scale.top) : "");
    const { mass } = this.known;
    const shown = areFewCells(this.column) ? mass.map((_, k) => k) : labelled(mass, now, scale);
    return this.labels.forEach((label, k) => {
      label.hidden = !shown.includes(k) || mass[k] < 0.0005;
      if (label.hidden) return;
      label.textContent = percent(mass[k]);
      label.style.left = `clamp(1.1rem, ${0.5 * (x[k] + x[k + 1])}%, calc(100% - 1.1rem))`;
      label.style.top = `${100 - Math.min(100, (100 * now[k]) / scale.top)}%`;
    });
  }

  #line(line, { mean, low, high }) {
    line.hidden = low === null || low === undefined;
    if (line.hidden) return;
    const [from, to] = [low, high].map((x) => this.axis.position(x));
    line.style.left = `${100 * from}%`;
    line.style.width = `${100 * (to - from)}%`;
    const dot = line.firstChild;
    dot.hidden = mean === null;
    const share = to > from ? (this.axis.position(mean) - from) / (to - from) : 0.5;
    dot.style.left = `${100 * share}%`;
  }

  /** Put the handles and the window where the ends are. */
  #place() {
    const isSet = this.ends.some((end) => end !== null);
    const at = [
      this.ends[0] === null ? 0 : this.axis.position(this.#edgeOf(0)),
      this.ends[1] === null ? 1 : this.axis.position(this.#edgeOf(1)),
    ];
    this.window.hidden = !isSet;
    this.window.style.left = `${100 * at[0]}%`;
    this.window.style.width = `${100 * Math.max(0, at[1] - at[0])}%`;
    this.handles.forEach((handle, which) => {
      const end = this.ends[which];
      handle.style.left = `${100 * at[which]}%`;
      handle.classList.toggle("open", end === null);
      mark(handle, "aria-valuenow", end ?? (which ? this.axis.high : this.axis.low));
      mark(handle, "aria-valuetext", end === null ? (which ? "no upper end" : "no lower end") : this.write.value(end));
    });
  }

  /** Where an end is drawn: on a grid at the edge of its cell. */
  #edgeOf(which) {
    const half = 0.5 * (this.column.step ?? 0);
    return which ? this.ends[1] + half : this.ends[0] - half;
  }

  // -------------------------------------------------------------------------------------------------------- reading

  /** Where a pointer is, as a share of the axis. */
  #shareAt(event) {
    const box = this.area.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  }

  /** Say what the bin holds in which an end lies. */
  #readEnd(which) {
    this.#read(this.ends[which] === null ? which : this.axis.position(this.ends[which]));
  }

  /** Say which bin lies at a share of the axis, and what it holds; null: nothing. */
  #read(share) {
    this.readAt = share;
    this.readout.hidden = share === null || !this.known;
    if (this.readout.hidden) return;
    const { edges } = this.column;
    const k = this.axis.bin(this.axis.value(share));
    const half = 0.5 * (this.column.step ?? 0);
    const ends = [edges[k] + half, edges[k + 1] - half].map((x) => this.write.value(x));
    const [isBelow, isAbove] = this.column.axis === "zoom" ? [] : (this.column.beyond ?? []);
    const range =
      isBelow && k === 0
        ? `up to ${ends[1]}`
        : isAbove && k === edges.length - 2
          ? `${ends[0]} and more`
          : ends[0] === ends[1]
            ? ends[0]
            : `${ends[0]} to ${ends[1]}`;
    if (this.isSurvival) {
      const [now, was] = [this.known.mass, this.known.prior].map((mass) => percent(later(mass)[k]));
      this.readout.textContent = edges[k + 1] > this.column.until ? `not learned beyond ${this.write.value(this.column.until)}` : `more than ${ends[1]}: ${now}, ${this.known.beside} ${was}`;
      return;
    }
    const inTable = this.known.rows ? `, in the table ${percent(this.known.rows[k])}` : "";
    this.readout.textContent = `${range}: ${percent(this.known.mass[k])}, ${this.known.beside} ${percent(this.known.prior[k])}${inTable}`;
    this.readout.classList.toggle("end", share > 0.5);
  }

  /** The value on the snapping grid that a pointer is at. */
  #at(event) {
    return snap(this.axis.value(this.#shareAt(event)), this.step);
  }

  /** An end as evidence has it: none at or beyond the end of the axis. */
  #end(x, which) {
    const reach = 0.5 * (this.column.step ?? 0);
    if (this.column.axis === "zoom") return Math.min(this.axis.high - reach, Math.max(this.axis.low + reach, x));
    if (which === 0) return x - reach <= this.axis.low ? null : x;
    return x + reach >= this.axis.high ? null : x;
  }

  #press(event) {
    if (event.button !== 0) return;
    const which = event.target.closest(".handle")?.dataset.which;
    const inside = event.target === this.window;
    const start = { x: this.#at(event), px: event.clientX, ends: [...this.ends] };
    const move =
      which !== undefined
        ? (x) => this.#moveEnd(Number(which), x, start)
        : inside
          ? (x) => this.#slide(x - start.x, start)
          : (x) => [Math.min(x, start.x), Math.max(x, start.x)];
    if (which !== undefined) this.handles[which].focus({ preventScroll: true });
    this.#follow(event, start, move);
    event.preventDefault();
  }

  /** Follow a pointer until it is let go; a press without a move is a click. */
  #follow(event, start, move) {
    let moved = false;
    const done = new AbortController();
    const options = { signal: done.signal };
    this.area.setPointerCapture(event.pointerId);
    this.area.addEventListener(
      "pointermove",
      (next) => {
        moved ||= Math.abs(next.clientX - start.px) >= CLICK;
        if (moved) this.#say(...move(this.#at(next)), true);
      },
      options,
    );
    this.area.addEventListener(
      "pointerup",
      (last) => {
        done.abort();
        if (moved) this.#say(...move(this.#at(last)), false);
        else if (!event.target.closest(".handle")) this.#click(start);
      },
      options,
    );
    const back = () => {
      done.abort();
      this.#say(...start.ends, false);
    };
    this.area.addEventListener("pointercancel", back, options);
    addEventListener(
      "keydown",
      (key) => {
        if (key.key === "Escape" && moved) back();
      },
      options,
    );
  }

  #moveEnd(which, x, start) {
    const other = start.ends[1 - which];
    if (other === null) return which ? [null, x] : [x, null];
    return x <= other ? [x, other] : [other, x];
  }

  #slide(by, start) {
    const ends = start.ends.map((end) => (end === null ? null : snap(end + by, this.step)));
    return ends;
  }

  /** A click takes the bin below it; where an interval is set it releases that. */
  #click(start) {
    if (this.ends.some((end) => end !== null)) return this.#say(null, null, false);
    const k = this.axis.bin(start.x);
    const half = 0.5 * (this.column.step ?? 0);
    return this.#say(this.column.edges[k] + half, this.column.edges[k + 1] - half, false);
  }

  #key(event, which) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const many = event.shiftKey ? 10 : 1;
    const by = { ArrowRight: many, ArrowUp: many, ArrowLeft: -many, ArrowDown: -many, PageUp: 10, PageDown: -10 }[
      event.key
    ];
    if (event.key === "Escape" || event.key === "Delete") this.#say(null, null, false);
    else if (event.key === "Home" || event.key === "End") {
      const end = event.key === "Home" ? this.axis.low : this.axis.high;
      this.#setEnd(which, end);
    } else if (by !== undefined) {
      const from = this.ends[which] ?? (which ? this.axis.high : this.axis.low);
      this.#setEnd(which, snap(from + by * this.step, this.step));
    } else return;
    event.preventDefault();
  }

  /** Move one end, never past the other. */
  #setEnd(which, x) {
    const [low, high] = this.ends;
    if (which === 0) this.#say(Math.min(x, high ?? this.axis.high), high, false);
    else this.#say(low, Math.max(x, low ?? this.axis.low), false);
  }

  #say(low, high, live) {
    const ends = [low === null ? null : this.#end(low, 0), high === null ? null : this.#end(high, 1)];
    this.ends = ends;
    this.#place();
    this.dispatchEvent(new CustomEvent("choose", { detail: { condition: interval(...ends), live }, bubbles: true }));
  }
}

define("jf-histogram", Histogram);

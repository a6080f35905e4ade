/** Evidence, its history, how the page is looked at, and all of it as an address. Pure functions. */

/**
 * One condition on one column, by its place in the table: one of levels, an interval, missing, or a text of the query
 * language. `words` is what the text field of an answer's condition shows.
 * @typedef {{column: number, levels?: number[], low?: number|null, high?: number|null, low_in?: boolean,
 *   high_in?: boolean, missing?: boolean, text?: string, words?: string}} Condition
 * @typedef {Condition[]|{text: string}} Evidence
 * @typedef {{name: string, kind: string, levels: any[]|null, labels?: string[], edges: number[]|null,
 *   step?: number|null, zone?: string|null, can_miss: boolean}} Column
 */

/** The condition on a column; null if there is none. */
export function conditionOn(evidence, column) {
  return (Array.isArray(evidence) && evidence.find((condition) => condition.column === column)) || null;
}

/** Evidence with the condition on a column put in the place of the one before; null takes it away. */
export function withCondition(evidence, column, condition) {
  const others = evidence.filter((other) => other.column !== column);
  return condition ? [...others, { ...condition, column }].sort((a, b) => a.column - b.column) : others;
}

/** One level alone; nothing if it was alone already. */
export function chooseLevel(condition, level) {
  return condition?.levels?.length === 1 && condition.levels[0] === level ? null : { levels: [level] };
}

/** The levels with one more, or without it; nothing if none or all are left. */
export function toggleLevel(condition, level, size) {
  const levels = new Set(condition?.levels ?? []);
  if (!levels.delete(level)) levels.add(level);
  return levelsOf(levels, size);
}

/** All levels that were possible but this one; once more, and it is possible again. */
export function excludeLevel(condition, level, size) {
  const levels = new Set(condition?.levels ?? Array(size).keys());
  if (levels.size === 1 && levels.has(level))
    return levelsOf(new Set([...Array(size).keys()].filter((k) => k !== level)), size);
  if (!levels.delete(level)) levels.add(level);
  return levelsOf(levels, size);
}

function levelsOf(levels, size) {
  return levels.size === 0 || levels.size === size ? null : { levels: [...levels].sort((a, b) => a - b) };
}

/** An interval; nothing if it has no ends. */
export function interval(low, high) {
  return low === null && high === null ? null : { low, high, low_in: true, high_in: true };
}

/** The evidence given so far, step by step, and the step that is shown. */
export class History {
  /** @type {{evidence: Evidence, sentence: string, probability: number|null, log: number|null}[]} */
  steps = [];
  place = -1;

  /** Add a step; what was undone is forgotten. A step that says the same again takes the place of the last one. */
  push(step) {
    if (this.now && this.now.sentence === step.sentence) this.steps[this.place] = step;
    else {
      this.steps = [...this.steps.slice(0, this.place + 1), step];
      this.place += 1;
    }
  }

  get now() {
    return this.steps[this.place] ?? null;
  }

  get canUndo() {
    return this.place > 0;
  }

  get canRedo() {
    return this.place < this.steps.length - 1;
  }

  /** Stand at another step, and return it; null if there is none. */
  go(place) {
    if (!this.steps[place]) return null;
    this.place = place;
    return this.now;
  }

  /** The same for another joint, whose columns and levels may have other places: each step by its words. */
  inWords() {
    this.steps = this.steps.map((step) => ({ ...step, evidence: { text: step.sentence } }));
  }
}

/**
 * The axis that was chosen for a column: logarithmic, from `low` to `high`, or else the whole axis.
 * @typedef {{name: string, log?: boolean, low?: number, high?: number}} ChosenAxis
 */

/**
 * How the page is looked at; `a` is the evidence that is compared with.
 * @typedef {{given: string, sort: "table"|"moved", scale: "full"|"most", axes: ChosenAxis[], pinned: string[],
 *   hidden: string[], panel: string|null, a: string}} View
 */

/** A view as the part of an address behind #, as short as can be. */
export function writeHash(view) {
  const words = new URLSearchParams();
  if (view.given) words.set("given", view.given);
  if (view.sort !== "table") words.set("sort", view.sort);
  if (view.scale === "most") words.set("scale", view.scale);
  for (const { name, log, low, high } of view.axes)
    words.append("axis", `${log ? "log" : low === undefined ? "whole" : `${low}:${high}`}:${name}`);
  for (const name of view.pinned) words.append("pin", name);
  for (const name of view.hidden) words.append("hide", name);
  if (view.panel) words.set("panel", view.panel);
  if (view.a) words.set("a", view.a);
  const text = words.toString();
  return text ? `#${text}` : "";
}

/** The view that an address contains. @returns {View} */
export function readHash(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  return {
    given: words.get("given") ?? "",
    sort: words.get("sort") === "moved" ? "moved" : "table",
    scale: words.get("scale") === "most" ? "most" : "full",
    axes: words.getAll("axis").map(readAxis).filter(Boolean),
    pinned: words.getAll("pin"),
    hidden: words.getAll("hide"),
    panel: words.get("panel"),
    a: words.get("a") ?? "",
  };
}

/** The axis that a text of an address describes; null if it describes none. @returns {ChosenAxis|null} */
function readAxis(text) {
  const [, kind, low, high, name] = /^(?:(log|whole)|([^:]+):([^:]+)):(.*)$/s.exec(text) ?? [];
  if (kind) return kind === "log" ? { name, log: true } : { name };
  return Number(low) < Number(high) ? { name, low: Number(low), high: Number(high) } : null;
}

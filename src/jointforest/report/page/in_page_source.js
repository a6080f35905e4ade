/** Answers questions in the page, with a joint of hidden trees that the file carries. */
import { Refused } from "./errors.js";
import { shares, tidy } from "./cuts.js";
import { readTyped } from "./read_typed.js";
import { pass, readTrees, through } from "./tree_pass.js";
import { pythonCall, sentence } from "./words.js";

const TAILS = [0.05, 0.95];

export class InPageSource {
  /** @param {object} joint - `wire` of wire.py */
  constructor({ table, columns, trees, tables }) {
    this.table = table;
    this.cuts = columns;
    const bytes = Uint8Array.from(atob(tables), (letter) => letter.charCodeAt(0));
    this.trees = readTrees(trees, littleEndian(bytes));
    this.prior = null;
    this.prior = this.#known([]).columns;
  }

  /**
   * The answer to one question.
   * @param {"table"|"posterior"} what
   * @param {object} body
   * @throws {Refused}
   */
  async ask(what, body) {
    if (what === "table") return this.table;
    if (what !== "posterior") throw new Refused("This file cannot answer that; the joint in Python can.");
    const found = this.#known(this.#conditions(body.evidence));
    const places = body.columns ?? [...found.columns.keys()];
    const columns = places.map((j) => this.#column(j, found));
    return { id: body.id, version: this.table.version, ...this.#said(found), columns };
  }

  /** Conditions, one a column, in the columns' order. */
  #conditions(evidence) {
    if (!Array.isArray(evidence)) {
      if (!evidence?.text?.trim()) return [];
      throw new Refused("A sentence of the query language needs Python: click, drag, or type in a card.");
    }
    const { columns } = this.table;
    const plain = ({ typed, ...one }) => (typed === undefined ? one : { ...one, ...readTyped(typed, columns[one.column]) });
    const found = evidence
      .map(plain)
      .map((one) => tidy(one, columns[one.column], this.cuts[one.column]))
      .filter(Boolean);
    found.sort((a, b) => a.column - b.column);
    if (new Set(found.map((one) => one.column)).size < found.length)
      throw new Refused("This file takes one condition a column.");
    return found;
  }

  /** What is known, and every column's masses of cuts and share of missing cells. */
  #known(evidence) {
    const said = new Map(evidence.map((one) => [one.column, this.#message(one)]));
    const passes = this.trees.map((tree) => {
      const own = tree.column.map((j, k) => (said.has(j) ? said.get(j).own(tree, k) : null));
      const found = pass(tree, own);
      return { tree, own, rest: found.rest, log: tree.log_weight + found.log };
    });
    const top = Math.max(...passes.map(({ log }) => log));
    if (top === -Infinity)
      throw new Refused(`the evidence has probability 0: ${sentence(evidence, this.table.columns, this.cuts)}`, true);
    const total = passes.reduce((sum, { log }) => sum + Math.exp(log - top), 0);
    const columns = this.table.columns.map(() => ({ mass: null, missing: 0 }));
    for (const one of passes) mix(columns, one, said, Math.exp(one.log - top) / total);
    columns.forEach((column) => normalise(column.mass));
    let log = top + Math.log(total);
    for (const { log: base } of said.values()) log += base;
    const isDensity = [...said.values()].some((one) => one.isDensity);
    return { evidence, columns, log: evidence.length ? log : 0, isDensity };
  }

  /** What a condition says of the states of its column's node. */
  #message(condition) {
    if (condition.missing !== undefined) {
      const own = (tree, k) => tree.blank[k].map((x) => (condition.missing ? x : 1 - x));
      return { own, share: null, log: 0, isDensity: false };
    }
    const found = shares(condition, this.table.columns[condition.column], this.cuts[condition.column]);
    const own = (tree, k) => {
      const { share } = found;
      const out = new Float64Array(tree.states[k]);
      for (let h = 0, at = 0; h < out.length; h += 1)
        for (let c = 0; c < share.length; c += 1, at += 1) out[h] += share[c] * tree.mass[k][at];
      return out;
    };
    return { own, ...found };
  }

  #said({ evidence, log, isDensity }) {
    const words = sentence(evidence, this.table.columns, this.cuts);
    return {
      evidence,
      sentence: words,
      notes: [],
      python: pythonCall(words),
      probability: isDensity ? null : Math.min(1, Math.exp(log)),
      log_probability: log,
      supported: true,
    };
  }

  /** What a card shows of column j. */
  #column(j, { evidence, columns }) {
    const column = this.table.columns[j];
    const cut = this.cuts[j];
    const condition = evidence.find((one) => one.column === j) ?? null;
    const fine = columns[j].mass;
    const mass = together(fine, cut.first);
    const before = together(this.prior[j].mass, cut.first);
    const numbers = column.levels ? ofLevels(column, cut, mass) : ofCuts(column, cut, fine, condition);
    return {
      mass: Array.from(mass),
      atoms: (cut.cell ?? []).map((place) => fine[place]),
      ...numbers,
      moved: evidence.length ? bits(mass, before) : 0,
      missing: missing(column, condition, columns[j].missing),
    };
  }
}

/** Add one tree's masses and shares of missing cells. */
function mix(columns, { tree, own, rest }, said, share) {
  if (!share) return;
  tree.column.forEach((j, k) => {
    if (j < 0) return;
    const condition = said.get(j);
    const states = own[k] ? rest[k].map((x, h) => x * own[k][h]) : rest[k];
    const total = states.reduce((sum, x) => sum + x, 0);
    const isCut = condition?.share;
    const mass = through(isCut ? rest[k] : states, tree.mass[k], tree.cuts[k]);
    if (isCut) mass.forEach((x, c) => (mass[c] = x * condition.share[c]));
    normalise(mass);
    columns[j].mass ??= new Float64Array(mass.length);
    mass.forEach((x, c) => (columns[j].mass[c] += share * x));
    columns[j].missing += (share * states.reduce((sum, x, h) => sum + x * tree.blank[k][h], 0)) / total;
  });
}

function normalise(mass) {
  const total = mass.reduce((sum, x) => sum + x, 0);
  for (let c = 0; c < mass.length; c += 1) mass[c] /= total;
}

/** Masses of bins from those of cuts; of levels they are the same. */
function together(fine, first) {
  if (!first) return fine;
  return Float64Array.from(first, (from, b) => {
    let sum = 0;
    for (let c = from; c < (first[b + 1] ?? fine.length); c += 1) sum += fine[c];
    return sum;
  });
}

/** P(true) of a boolean column, the interval's ends of an ordered one as places. */
function ofLevels(column, cut, mass) {
  if (column.kind === "boolean") return { mean: mass[column.levels.indexOf(true)] ?? 0, low: null, high: null };
  if (!cut.ordered) return { mean: null, low: null, high: null };
  const below = sums(mass);
  const [low, high] = TAILS.map((tail) => {
    const place = below.findIndex((x, k) => k > 0 && x >= tail - 1e-12);
    return place < 0 ? mass.length - 1 : place - 1;
  });
  return { mean: null, low, high };
}

/** Mean, and the ends of the interval with equal tails that holds 90 %. */
function ofCuts(column, cut, fine, condition) {
  const { cuts, centers, center } = cut;
  const below = sums(fine);
  const ends = TAILS.map((tail) => {
    let j = below.length - 1;
    while (j > 0 && below[j] > tail) j -= 1;
    if (j === below.length - 1) return cuts[j];
    const x = cuts[j] + ((tail - below[j]) / (below[j + 1] - below[j])) * (cuts[j + 1] - cuts[j]);
    return column.step ? center + Math.ceil((x - center) / column.step - 0.5 - 1e-6) * column.step : x;
  });
  const mean = fine.reduce((sum, x, c) => sum + x * centers[c], 0);
  const least = condition?.low ?? -Infinity;
  const most = condition?.high ?? Infinity;
  const [mean_, low, high] = [mean, ...ends].map((x) => Math.min(Math.max(x, least), most));
  return { mean: mean_, low, high };
}

/** 0, and the sums of the first 1, 2, ... entries. */
function sums(mass) {
  const out = new Float64Array(mass.length + 1);
  for (let c = 0; c < mass.length; c += 1) out[c + 1] = out[c] + mass[c];
  return out;
}

/** Kullback-Leibler divergence from what was known before, in bits. */
function bits(mass, before) {
  const sum = mass.reduce((total, x, k) => total + (x > 0 ? x * Math.log2(x / Math.max(before[k], 1e-300)) : 0), 0);
  return Math.max(sum, 0);
}

function missing(column, condition, share) {
  if (condition?.missing !== undefined) return Number(condition.missing);
  return condition || !column.can_miss ? null : Math.min(1, share);
}

/** Numbers of 4 bytes each, the lowest byte first. */
function littleEndian(bytes) {
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, k) => view.getFloat32(4 * k, true));
}

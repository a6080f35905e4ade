/** Answers questions in the page, with the joint that the file carries. */
import { Refused } from "./errors.js";
import { shares, tidy } from "./cuts.js";
import { ForestPart } from "./forest_part.js";
import { HiddenPart, normalise } from "./hidden_part.js";
import { inWords, NEIGHBOURHOOD, FEW } from "./support.js";
import { arrayOf, bytesOf } from "./unpack.js";
import { pythonCall, sentence, wordsBeside } from "./words.js";

const TAILS = [0.05, 0.95];
const BEYOND = 0.01; // as in answers.py
const SUPPORT = 0.5; // evidence is unsupported if the background carries more of the posterior

export class InPageSource {
  /** @param {object} joint - `wire` of embed.py */
  constructor(joint) {
    this.table = joint.table;
    this.nRows = joint.n_rows;
    this.ready = this.#read(joint);
  }

  async #read({ columns, parts, packed }) {
    const buffer = await bytesOf(packed);
    const whole = (column, j) => ({
      ...column,
      cuts: arrayOf(buffer, column.cuts),
      centers: arrayOf(buffer, column.centers),
      step: this.table.columns[j].step,
    });
    this.cuts = columns.map((column, j) => (column.cuts ? whole(column, j) : column));
    this.parts = parts.map((part) =>
      part.kind === "hidden" ? new HiddenPart(part, buffer) : new ForestPart(part, buffer, this.cuts),
    );
    this.prior = this.table.columns.map(() => null);
    this.nothing = this.#known([]);
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
    await this.ready;
    const found = this.#known(this.#conditions(body.evidence));
    const places = body.columns ?? [...this.table.columns.keys()];
    const present = found.whereKnown();
    const columns = places.map((j) => this.#column(j, found, present));
    return { id: body.id, version: this.table.version, ...this.#said(found), columns };
  }

  /** Conditions, one a column, in the columns' order. */
  #conditions(evidence) {
    if (!Array.isArray(evidence)) {
      if (!evidence?.text?.trim()) return [];
      throw new Refused("A sentence of the query language needs Python: click, or drag.");
    }
    const { columns } = this.table;
    const found = evidence.map((one) => tidy(one, columns[one.column], this.cuts[one.column])).filter(Boolean);
    found.sort((a, b) => a.column - b.column);
    if (new Set(found.map((one) => one.column)).size < found.length)
      throw new Refused("This file takes one condition a column.");
    return found;
  }

  /** Evidence observed by all parts of the joint; and the same together with the fact that its cells are known. */
  #known(evidence) {
    const said = new Map(evidence.map((one) => [one.column, this.#ofCondition(one)]));
    const { log, mixture } = this.#observed(said, evidence);
    const isDensity = [...said.values()].some((one) => one.isDensity);
    const hasGaps = [...said.keys()].some((j) => this.table.columns[j].can_miss);
    const present = hasGaps ? new Map([...said].map(([j, one]) => [j, { ...one, isPresent: one.missing === undefined }])) : said;
    const whereKnown = () => (hasGaps ? this.#observed(present, evidence).mixture : mixture);
    if ([...said.values()].some((one) => one.missing)) whereKnown(); // refuses a value that is missing then
    return { evidence, mixture, whereKnown, log: evidence.length ? log : 0, isDensity };
  }

  /** What is said, observed by all parts of the joint. */
  #observed(said, evidence) {
    const observed = this.parts.map((part) => part.observe(said));
    const top = Math.max(...observed.map(({ log }) => log));
    if (top === -Infinity)
      throw new Refused(`the evidence has probability 0: ${sentence(evidence, this.table.columns, this.cuts)}`, true);
    const total = observed.reduce((sum, { log }) => sum + Math.exp(log - top), 0);
    const mixture = observed.map((one) => ({ ...one, weight: Math.exp(one.log - top) / total }));
    return { mixture: mixture.filter(({ weight }) => weight > 0), log: top + Math.log(total) };
  }

  /** A condition as the parts of the joint read it: with the share of each cut that meets it. */
  #ofCondition(condition) {
    if (condition.missing !== undefined) return { missing: condition.missing };
    const { column: j } = condition;
    return { condition, ...shares(condition, this.table.columns[j], this.cuts[j]) };
  }

  #said({ evidence, mixture, log, isDensity }) {
    const words = sentence(evidence, this.table.columns, this.cuts);
    const background = mixture.reduce((sum, one) => sum + one.weight * one.background, 0);
    const rows = evidence.length ? this.#rowsLike(evidence, mixture, log) : this.nRows;
    return {
      evidence: evidence.map((one) => ({ ...one, words: wordsBeside(one, this.table.columns[one.column]) })),
      sentence: words,
      python: pythonCall(words),
      probability: isDensity ? null : Math.min(1, Math.exp(log)),
      log_probability: log,
      supported: background <= SUPPORT,
      support: evidence.length && this.nRows ? inWords(rows, this.nRows) : "",
      extrapolated: this.nRows > 0 && rows < FEW,
    };
  }

  /** Rows of the table that know the cells of the evidence; a value with a density counts with its neighbourhood. */
  #rowsLike(evidence, mixture, log) {
    const points = evidence.filter((one) => this.#ofCondition(one).isDensity);
    const alone = points.map((one) => Math.log(NEIGHBOURHOOD) - this.#known([one]).log);
    const cells = evidence.filter((one) => one.missing === undefined).map(({ column }) => Math.log1p(-absent(column, mixture)));
    return this.nRows * Math.exp(Math.min(0, [...alone, ...cells].reduce((sum, x) => sum + x, log)));
  }

  /** Mass of each cut, or level, of column j. */
  #fine(j, { evidence, mixture }) {
    if (!evidence.length && this.prior[j]) return this.prior[j];
    const found = mixture.map(({ weight, column }) => [weight, column(j)]);
    const out = new Float64Array(found[0][1].length);
    for (const [weight, mass] of found) for (let c = 0; c < out.length; c += 1) out[c] += weight * mass[c];
    normalise(out);
    if (!evidence.length) this.prior[j] = out;
    return out;
  }

  /** What a card shows of column j. */
  #column(j, known, present) {
    const { evidence } = known;
    const column = this.table.columns[j];
    const cut = this.cuts[j];
    const condition = evidence.find((one) => one.column === j) ?? null;
    const fine = this.#fine(j, known);
    const mass = together(fine, cut.first);
    const before = together(this.#fine(j, this.nothing), cut.first);
    const numbers = column.levels ? ofLevels(column, cut, mass) : learned(column, cut, fine, ofCuts(column, cut, fine, condition));
    return {
      mass: Array.from(mass),
      ...numbers,
      moved: evidence.length ? bits(mass, before) : 0,
      missing: missing(column, condition, absent(j, present)),
    };
  }
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

/** The same of times that are not over in some rows: no mean that rests on what is not learned, and no later end. */
function learned({ until }, { cuts }, fine, { mean, low, high }) {
  if (until == null) return { mean, low, high };
  const share = (c) => Math.min(1, Math.max(0, (cuts[c + 1] - until) / (cuts[c + 1] - cuts[c])));
  const beyond = fine.reduce((sum, x, c) => sum + x * share(c), 0);
  return { mean: beyond > BEYOND ? null : mean, low: Math.min(low, until), high: Math.min(high, until) };
}

/** 0, and the sums of the first 1, 2, ... entries. */
function sums(mass) {
  const out = new Float64Array(mass.length + 1);
  for (let c = 0; c < mass.length; c += 1) out[c + 1] = out[c] + mass[c];
  return out;
}

/** P(the cell of column j is missing), were it not known. */
function absent(j, mixture) {
  return mixture.reduce((sum, one) => sum + one.weight * one.missing(j), 0);
}

/** Kullback-Leibler divergence from the distribution without evidence, in bits. */
function bits(mass, before) {
  const sum = mass.reduce((total, x, k) => total + (x > 0 ? x * Math.log2(x / Math.max(before[k], 1e-300)) : 0), 0);
  return Math.max(sum, 0);
}

function missing(column, condition, share) {
  if (condition?.missing !== undefined) return Number(condition.missing);
  return condition || !column.can_miss ? null : Math.min(1, share);
}

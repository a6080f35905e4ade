/** A forest of boxes: how well evidence fits each of its leaves, and what these say of each column. */
import { density, mass } from "./densities.js";
import { arrayOf, distributionsOf } from "./unpack.js";

export class ForestPart {
  /**
   * @param {object} part - `_forest_part` of embed.py
   * @param {ArrayBuffer} buffer
   * @param {object[]} cuts - of the columns, with their arrays
   */
  constructor(part, buffer, cuts) {
    this.logWeight = part.log_weight;
    this.leaf = arrayOf(buffer, part.log_weights);
    this.nBackground = part.n_background;
    this.cuts = cuts;
    this.missing = part.missing.map((one) => one && arrayOf(buffer, one));
    this.slots = part.slots.map((slot) => readSlot(slot, buffer));
    /** Mass of each cut in each leaf, made when a column is first asked for. */
    this.tables = [];
  }

  /**
   * How well evidence fits.
   * @param {Map<number, object>} said - by column, with `condition` in the page's numbers and `isPresent`, or `missing`
   */
  observe(said) {
    const fits = [...said].map(([j, one]) => [j, this.#fit(j, one)]);
    const n = this.leaf.length;
    const log = new Float64Array(this.leaf);
    for (let l = 0; l < n; l += 1) for (const [, fit] of fits) log[l] += Math.log(fit[l]);
    for (const [j, { isPresent }] of said)
      if (isPresent && this.missing[j]) for (let l = 0; l < n; l += 1) log[l] += Math.log1p(-this.missing[j][l]);
    const top = log.reduce((most, x) => Math.max(most, x), -Infinity);
    if (top === -Infinity) return { log: -Infinity };
    let total = 0;
    const weight = log.map((x) => Math.exp(x - top));
    for (const w of weight) total += w;
    for (let l = 0; l < n; l += 1) weight[l] /= total;
    return {
      log: this.logWeight + top + Math.log(total),
      background: weight.subarray(n - this.nBackground).reduce((sum, w) => sum + w, 0),
      column: (j) => this.#column(j, weight, said.get(j)),
      missing: (j) => (this.missing[j] ? dot(weight, this.missing[j]) : 0),
    };
  }

  /** What a condition says of each leaf. */
  #fit(j, one) {
    if (one.missing !== undefined) {
      const rate = this.missing[j] ?? new Float32Array(this.leaf.length);
      return Float64Array.from(rate, (x) => (one.missing ? x : 1 - x));
    }
    const n = this.leaf.length;
    const out = new Float64Array(n);
    const slot = this.slots[j];
    if (slot.levels) {
      for (let r = 0; r < n; r += 1)
        for (const level of one.condition.levels) out[r] += slot.levels[r * slot.n + level];
      return out;
    }
    const range = this.#range(j, one.condition);
    for (let r = 0; r < n; r += 1) out[r] = range.isPoint ? pointDensity(slot, r, range) : rangeMass(slot, r, range);
    return out;
  }

  /** A condition on numbers in the column's own numbers: an interval (u, v] with its atoms, or a point. */
  #range(j, { low, high, low_in: lowIn = true, high_in: highIn = true }) {
    const { unit, origin, step, atoms } = this.cuts[j];
    const own = (x) => x / unit - origin;
    const half = 0.5 * (step ? step / unit : 0);
    const u = low === null || low === undefined ? -Infinity : own(low) - half;
    const v = high === null || high === undefined ? Infinity : own(high) + half;
    if (!step && u === v) return { isPoint: true, x: u, atom: atoms.indexOf(u) };
    const held = atoms.map((x) => (half || lowIn ? x >= u : x > u) && (half || highIn ? x <= v : x < v));
    return { isPoint: false, u, v, held };
  }

  #column(j, weight, one) {
    const slot = this.slots[j];
    const has = one?.condition;
    if (!has) return mixed(weight, this.#table(j), slot.levels ? slot.n : this.cuts[j].cuts.length - 1);
    if (slot.levels) return ofLevels(weight, slot, has.levels);
    return this.#inRange(weight, j, this.#range(j, has));
  }

  /** Mass of each cut, or level, in each leaf, without evidence on the column. */
  #table(j) {
    const slot = this.slots[j];
    if (slot.levels) return slot.levels;
    if (this.tables[j]) return this.tables[j];
    const ends = this.#ends(j);
    const n = ends.length - 1;
    const table = new Float32Array(this.leaf.length * n);
    for (let r = 0; r < this.leaf.length; r += 1)
      for (let c = 0; c < n; c += 1) table[r * n + c] = rangeMass(slot, r, { u: ends[c], v: ends[c + 1], held: this.#atomsIn(j, ends[c], ends[c + 1]) });
    this.tables[j] = table;
    return table;
  }

  /** Ends of the cuts in the column's own numbers; the outermost hold all beyond them. */
  #ends(j) {
    const { cuts, unit, origin } = this.cuts[j];
    const ends = Float64Array.from(cuts, (x) => x / unit - origin);
    ends[0] = -Infinity;
    ends[ends.length - 1] = Infinity;
    return ends;
  }

  #atomsIn(j, u, v) {
    return this.cuts[j].atoms.map((x) => u < x && x <= v);
  }

  /** Mass of each cut given that the number lies in a range. */
  #inRange(share, j, range) {
    const slot = this.slots[j];
    const ends = this.#ends(j);
    const out = new Float64Array(ends.length - 1);
    const { u, v, held, isPoint, x } = range;
    if (isPoint) {
      const c = ends.findIndex((end, k) => end < x && x <= ends[k + 1]);
      out[c] = 1;
      return out;
    }
    const cuts = [...out.keys()].filter((c) => ends[c + 1] >= u && ends[c] <= v);
    const inside = cuts.map((c) => ({
      u: Math.max(u, ends[c]),
      v: Math.min(v, ends[c + 1]),
      held: this.#atomsIn(j, ends[c], ends[c + 1]).map((is, k) => is && held[k]),
    }));
    for (let r = 0; r < share.length; r += 1) {
      const total = share[r] > 1e-12 ? rangeMass(slot, r, range) : 0;
      if (total > 0) cuts.forEach((c, k) => (out[c] += (share[r] / total) * rangeMass(slot, r, inside[k])));
    }
    return out;
  }
}

function readSlot(slot, buffer) {
  if (slot.levels) return { levels: distributionsOf(buffer, slot.levels), n: slot.levels.columns };
  const found = { atoms: slot.atoms.map((one) => arrayOf(buffer, one)) };
  for (const name of ["a", "b", "family"]) found[name] = arrayOf(buffer, slot[name]);
  for (const name of ["lo", "hi"]) {
    const different = arrayOf(buffer, slot[name].different);
    found[name] = Float64Array.from(arrayOf(buffer, slot[name].place), (k) => different[k]);
  }
  if (slot.start) [found.start, found.share] = [arrayOf(buffer, slot.start), arrayOf(buffer, slot.share)];
  const n = found.start ? found.start.length - 1 : found.a.length;
  found.rest = Float64Array.from({ length: n }, (_, r) => Math.max(0, 1 - found.atoms.reduce((sum, one) => sum + one[r], 0)));
  return found;
}

/** Sum over the pieces of a leaf's density, most often one, of what is asked of each times its share. */
function ofPieces({ a, b, lo, hi, family, start, share }, r, ask) {
  if (!start) return ask(family[r], a[r], b[r], lo[r], hi[r]);
  let total = 0;
  for (let k = start[r]; k < start[r + 1]; k += 1) total += share[k] * ask(family[k], a[k], b[k], lo[k], hi[k]);
  return total;
}

/** P(u < X <= v) in a leaf, with the atoms that are held. */
function rangeMass(slot, r, { u, v, held }) {
  const { atoms, rest } = slot;
  let total = rest[r] > 1e-7 ? rest[r] * ofPieces(slot, r, (...density) => mass(...density, u, v)) : 0;
  for (let k = 0; k < atoms.length; k += 1) if (held[k]) total += atoms[k][r];
  return total;
}

/** Density at a number of a column without a grid; at an atom its mass. */
function pointDensity(slot, r, { x, atom }) {
  return atom >= 0 ? slot.atoms[atom][r] : slot.rest[r] * ofPieces(slot, r, (...piece) => density(...piece, x));
}

function mixed(share, table, n) {
  const out = new Float64Array(n);
  for (let i = 0; i < share.length; i += 1) {
    const w = share[i];
    if (w < 1e-15) continue;
    for (let c = 0, at = i * n; c < n; c += 1, at += 1) out[c] += w * table[at];
  }
  return out;
}

function ofLevels(share, slot, levels) {
  const out = new Float64Array(slot.n);
  for (let i = 0; i < share.length; i += 1) {
    const at = i * slot.n;
    const total = levels.reduce((sum, level) => sum + slot.levels[at + level], 0);
    if (total > 0) for (const level of levels) out[level] += (share[i] * slot.levels[at + level]) / total;
  }
  return out;
}

function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k += 1) sum += a[k] * b[k];
  return sum;
}

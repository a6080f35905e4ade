/** A forest of boxes: how well evidence fits each of its leaves, and what these say of each column. */
import { density, mass } from "./densities.js";
import { arrayOf, distributionsOf } from "./unpack.js";

const SUM = 0;
const FACTORS = 2;

export class ForestPart {
  /**
   * @param {object} part - `_forest_part` of embed.py
   * @param {ArrayBuffer} buffer
   * @param {object[]} cuts - of the columns, with their arrays
   */
  constructor(part, buffer, cuts) {
    this.logWeight = part.log_weight;
    this.leaf = arrayOf(buffer, part.log_weights);
    this.nRows = part.n_rows;
    this.hasBackground = part.has_background;
    this.cuts = cuts;
    this.missing = part.missing.map((one) => one && arrayOf(buffer, one));
    this.slots = part.slots.map((slot) => readSlot(slot, buffer));
    this.nodes = part.nodes && readNodes(part.nodes, buffer);
    /** Mass of each cut in each parameter row, made when a column is first asked for. */
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
    const value = this.nodes ? this.#up(fits) : null;
    for (let l = 0; l < n; l += 1) {
      if (this.nodes && this.nodes.start[l + 1] > this.nodes.start[l]) {
        log[l] += value[this.nodes.start[l]];
        for (const [j, fit] of fits) if (said.get(j).missing !== undefined) log[l] += Math.log(fit[l]);
      } else for (const [, fit] of fits) log[l] += Math.log(fit[l]);
    }
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
      background: this.hasBackground ? weight[n - 1] : 0,
      column: (j) => this.#column(j, weight, value, said.get(j)),
      missing: (j) => (this.missing[j] ? dot(weight, this.missing[j]) : 0),
    };
  }

  /** What a condition says of each parameter row; of missing cells, of each leaf. */
  #fit(j, one) {
    if (one.missing !== undefined) {
      const rate = this.missing[j] ?? new Float32Array(this.leaf.length);
      return Float64Array.from(rate, (x) => (one.missing ? x : 1 - x));
    }
    const out = new Float64Array(this.nRows);
    const slot = this.slots[j];
    if (slot.levels) {
      for (let r = 0; r < this.nRows; r += 1)
        for (const level of one.condition.levels) out[r] += slot.levels[r * slot.n + level];
      return out;
    }
    const range = this.#range(j, one.condition);
    for (let r = 0; r < this.nRows; r += 1) out[r] = range.isPoint ? pointDensity(slot, r, range) : rangeMass(slot, r, range);
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

  #column(j, weight, value, one) {
    const [rows, share] = this.#mixture(j, weight, value);
    const slot = this.slots[j];
    const has = one?.condition;
    if (!has) return mixed(rows, share, this.#table(j), slot.levels ? slot.n : this.cuts[j].cuts.length - 1);
    if (slot.levels) return ofLevels(rows, share, slot, has.levels);
    return this.#inRange(rows, share, j, this.#range(j, has));
  }

  /** Parameter rows that describe column j, and their weights. */
  #mixture(j, weight, value) {
    if (!this.nodes) return [null, weight];
    const { start, end, kind, row, scope, scopes } = this.nodes;
    const d = this.slots.length;
    const [rows, share] = [[], []];
    const part = new Float64Array(kind.length);
    for (let l = 0; l < weight.length; l += 1) {
      if (!weight[l]) continue;
      if (start[l] === start[l + 1]) {
        rows.push(l);
        share.push(weight[l]);
        continue;
      }
      part[start[l]] = weight[l];
      for (let q = start[l]; q < start[l + 1]; q += 1) {
        if (kind[q] === FACTORS) {
          if (part[q] > 0 && scopes[scope[q] * d + j]) {
            rows.push(row[q]);
            share.push(part[q]);
          }
          continue;
        }
        for (let child = q + 1; child < end[q]; child = end[child])
          part[child] = kind[q] !== SUM || !part[q] ? part[q] : part[q] * Math.exp(this.nodes.log_weight[child] + value[child] - value[q]);
      }
    }
    return [rows, share];
  }

  /** log p(evidence) of each node of the circuits; missing cells count for the leaf. */
  #up(fits) {
    const { end, kind, row, scope, scopes, log_weight: logWeight } = this.nodes;
    const d = this.slots.length;
    const value = new Float64Array(kind.length);
    for (let q = kind.length - 1; q >= 0; q -= 1) {
      if (kind[q] === FACTORS) {
        for (const [j, fit] of fits)
          if (fit.length === this.nRows && scopes[scope[q] * d + j]) value[q] += Math.log(fit[row[q]]);
      } else if (kind[q] === SUM) {
        let top = -Infinity;
        for (let child = q + 1; child < end[q]; child = end[child]) top = Math.max(top, logWeight[child] + value[child]);
        let total = 0;
        if (top > -Infinity)
          for (let child = q + 1; child < end[q]; child = end[child]) total += Math.exp(logWeight[child] + value[child] - top);
        value[q] = top > -Infinity ? top + Math.log(total) : top;
      } else for (let child = q + 1; child < end[q]; child = end[child]) value[q] += value[child];
    }
    return value;
  }

  /** Mass of each cut, or level, in each parameter row, without evidence on the column. */
  #table(j) {
    const slot = this.slots[j];
    if (slot.levels) return slot.levels;
    if (this.tables[j]) return this.tables[j];
    const ends = this.#ends(j);
    const n = ends.length - 1;
    const table = new Float32Array(this.nRows * n);
    for (let r = 0; r < this.nRows; r += 1)
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
  #inRange(rows, share, j, range) {
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
    for (let i = 0; i < share.length; i += 1) {
      const r = rows ? rows[i] : i;
      const total = share[i] > 1e-12 ? rangeMass(slot, r, range) : 0;
      if (total > 0) cuts.forEach((c, k) => (out[c] += (share[i] / total) * rangeMass(slot, r, inside[k])));
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
  found.rest = Float64Array.from(found.a, (_, r) => Math.max(0, 1 - found.atoms.reduce((sum, one) => sum + one[r], 0)));
  return found;
}

function readNodes(nodes, buffer) {
  return Object.fromEntries(Object.entries(nodes).map(([name, one]) => [name, arrayOf(buffer, one)]));
}

/** P(u < X <= v) in a parameter row, with the atoms that are held. */
function rangeMass({ a, b, lo, hi, family, atoms, rest }, r, { u, v, held }) {
  let total = rest[r] > 1e-7 ? rest[r] * mass(family[r], a[r], b[r], lo[r], hi[r], u, v) : 0;
  for (let k = 0; k < atoms.length; k += 1) if (held[k]) total += atoms[k][r];
  return total;
}

/** Density at a number of a column without a grid; at an atom its mass. */
function pointDensity({ a, b, lo, hi, family, atoms, rest }, r, { x, atom }) {
  return atom >= 0 ? atoms[atom][r] : rest[r] * density(family[r], a[r], b[r], lo[r], hi[r], x);
}

function mixed(rows, share, table, n) {
  const out = new Float64Array(n);
  for (let i = 0; i < share.length; i += 1) {
    const w = share[i];
    if (w < 1e-15) continue;
    for (let c = 0, at = (rows ? rows[i] : i) * n; c < n; c += 1, at += 1) out[c] += w * table[at];
  }
  return out;
}

function ofLevels(rows, share, slot, levels) {
  const out = new Float64Array(slot.n);
  for (let i = 0; i < share.length; i += 1) {
    const at = (rows ? rows[i] : i) * slot.n;
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

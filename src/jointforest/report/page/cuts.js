/** Evidence on one column as a share of each of its cuts. Pure functions. */
import { Refused } from "./errors.js";

/**
 * A condition as people say it: intervals on a grid end at cells, one cell is a value; null if it says nothing.
 * @param {object} condition - of one column, as the page says it
 * @param {object} column - of the table
 * @param {object} cut - `_column` of embed.py
 */
export function tidy(condition, column, cut) {
  const { column: place } = condition;
  if (condition.missing !== undefined) return { column: place, missing: condition.missing };
  if (condition.levels) {
    const levels = [...new Set(condition.levels)].sort((a, b) => a - b);
    if (!levels.length) throw new Refused(`column '${column.name}': no level is left`, true);
    return levels.length === column.levels.length ? null : { column: place, levels };
  }
  let { low = null, high = null, low_in: lowIn = true, high_in: highIn = true } = condition;
  if (low === null && high === null) return null;
  if (column.step) {
    const first = low === null ? null : firstCell(low, lowIn, column.step, cut.center, 1);
    const last = high === null ? null : firstCell(high, highIn, column.step, cut.center, -1);
    if (first !== null && last !== null && first > last)
      throw new Refused(`column '${column.name}': no value lies between ${low} and ${high}`, true);
    low = first === null ? null : cellCentre(first, column.step, cut.center);
    high = last === null ? null : cellCentre(last, column.step, cut.center);
    lowIn = highIn = true;
  }
  if (low !== null && high !== null && (low > high || (low === high && !(lowIn && highIn))))
    throw new Refused(`column '${column.name}': the interval from ${low} to ${high} is reversed or empty`);
  return { column: place, low, high, low_in: lowIn || low === null, high_in: highIn || high === null };
}

/** Number of the first cell from an end on; with a sign of -1 of the last one up to it. */
function firstCell(end, closed, step, center, sign) {
  const cells = (sign * (end - center)) / step;
  const near = Math.round(cells);
  const rounding = 1e-6 + 1e-15 * Math.abs(cells); // of a fine grid, far from its centre
  const found = Math.abs(cells - near) <= rounding ? near + (closed ? 0 : 1) : Math.ceil(cells);
  return sign * found;
}

function cellCentre(cell, step, center) {
  return Number((center + cell * step).toPrecision(15));
}

/**
 * Share of each cut that meets a condition, and the logarithm of what makes a mass of it a density (0: it is a mass).
 * Within a cut evidence counts by how much of it is covered: over its cells on a grid, else over its width.
 * @returns {{share: Float64Array, log: number, isDensity: boolean}}
 */
export function shares(condition, column, cut) {
  if (condition.levels) {
    const share = new Float64Array(column.levels.length);
    for (const level of condition.levels) share[level] = 1;
    return { share, log: 0, isDensity: false };
  }
  const { cuts, points } = cut;
  const n = cuts.length - 1;
  const share = new Float64Array(n);
  const atoms = new Map(column.step ? [] : points.map((place) => [place, cuts[place + 1]]));
  const { low, high } = condition;
  if (!column.step && low !== null && low === high) return ofValue(low, cuts, atoms, share, column);
  for (let c = 0; c < n; c += 1) {
    if (atoms.has(c)) share[c] = isInside(atoms.get(c), condition) ? 1 : 0;
    else share[c] = column.step ? ofCells(cuts[c], cuts[c + 1], condition, column.step, cut.center) : ofWidth(cuts[c], cuts[c + 1], condition);
  }
  if (share.every((x) => x === 0)) throw beyond(column);
  return { share, log: 0, isDensity: false };
}

function ofValue(x, cuts, atoms, share, column) {
  const atom = [...atoms].find(([, at]) => at === x);
  const n = share.length;
  let place = atom?.[0] ?? cuts.findIndex((cut, c) => c < n && !atoms.has(c) && cut < x && x <= cuts[c + 1]);
  if (place < 0 && x === cuts[0]) place = 0;
  if (place < 0) throw beyond(column);
  share[place] = 1;
  return { share, log: atom ? 0 : -Math.log(cuts[place + 1] - cuts[place]), isDensity: !atom };
}

function isInside(x, { low, high, low_in: lowIn, high_in: highIn }) {
  return (low === null || x > low || (lowIn && x === low)) && (high === null || x < high || (highIn && x === high));
}

function ofWidth(from, to, { low, high }) {
  const overlap = Math.min(to, high ?? Infinity) - Math.max(from, low ?? -Infinity);
  return Math.min(1, Math.max(0, overlap / (to - from)));
}

function ofCells(from, to, { low, high }, step, center) {
  const number = (x) => (x - center) / step;
  const first = Math.floor(number(from) + 1e-6) + 1;
  const last = Math.floor(number(to) + 1e-6);
  if (last < first) return ofWidth(from, to, { low: low === null ? null : low - step / 2, high: high === null ? null : high + step / 2 });
  const begin = low === null ? first : Math.max(first, Math.round(number(low)));
  const end = high === null ? last : Math.min(last, Math.round(number(high)));
  return Math.max(0, end - begin + 1) / (last - first + 1);
}

function beyond(column) {
  return new Refused(`column '${column.name}': this file knows nothing beyond the ends of the histogram`);
}

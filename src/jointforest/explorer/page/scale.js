/** Where the values of a column lie on its axis, and which values are round. Pure functions. */

const DAY = 86_400_000;
const UNITS = [1000, 5000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 10_800_000, 21_600_000, DAY, 7 * DAY];

/**
 * The axis of a histogram: values in order of its edges onto 0 to 1. Bins of about the same width are drawn true to
 * scale, with densities as heights; of bins of very different width each takes the same place, with its mass as height.
 * @param {number[]} edges
 */
export function axis(edges) {
  const last = edges.length - 1;
  const widths = edges.slice(1).map((edge, k) => edge - edges[k]);
  const even = Math.max(...widths) <= 4 * Math.min(...widths);
  const span = edges[last] - edges[0];
  const bin = (x) => binOf(edges, x);
  const position = (x) => {
    if (x <= edges[0]) return 0;
    if (x >= edges[last]) return 1;
    if (even) return (x - edges[0]) / span;
    const k = bin(x);
    return (k + (x - edges[k]) / widths[k]) / last;
  };
  const value = (share) => {
    const t = Math.min(1, Math.max(0, share));
    if (even) return edges[0] + t * span;
    const k = Math.min(last - 1, Math.floor(t * last));
    return edges[k] + (t * last - k) * widths[k];
  };
  const height = (mass, k) => (even ? (mass * span) / widths[k] / last : mass);
  return { position, value, height, bin, even, low: edges[0], high: edges[last] };
}

/** The bin that x is in, the nearest one outside. */
export function binOf(edges, x) {
  let low = 0;
  let high = edges.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * The grid that a drag snaps to: about 200 round steps over the axis, and never finer than the column's own step.
 * @param {{kind: string, edges: number[], step?: number|null}} column
 */
export function snapStep(column) {
  const { edges } = column;
  const rough = (edges[edges.length - 1] - edges[0]) / 200;
  const own = column.step ?? 0;
  if (column.kind === "datetime")
    return Math.max(own, UNITS.find((unit) => unit >= rough) ?? roundUp(rough / DAY) * DAY);
  return own > 0 ? own * Math.max(1, roundUp(rough / own)) : roundUp(rough);
}

/** The least of 1, 2, 5 times a power of ten that is at least x. */
export function roundUp(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  const share = x / power;
  const digit = share <= 1.0000001 ? 1 : share <= 2.0000001 ? 2 : share <= 5.0000001 ? 5 : 10;
  return power < 1 ? digit / Math.round(1 / power) : digit * power;
}

/** x on the grid of a step, without the noise of floating point. */
export function snap(x, step) {
  const k = Math.round(x / step);
  return step < 1 ? (k / Math.round(1 / step) === 0 ? 0 : Number((k * step).toPrecision(12))) : k * step;
}

/** At most `most` round values on an axis to write below it. */
export function ticks(column, most = 4) {
  const line = axis(column.edges);
  if (!line.even) return unevenTicks(column.edges, most);
  const rough = (line.high - line.low) / most;
  const step = column.kind === "datetime" ? dateStep(rough) : tickStep(rough, column.step ?? 0);
  const found = [];
  for (let k = Math.ceil(line.low / step); k * step <= line.high && found.length <= most; k += 1)
    found.push(snap(k * step, step) || 0);
  if (found.length === 1 && column.step) return found; // a column of one value
  return found.length > 1 ? found : [line.low, line.high];
}

/** The step between ticks: as rough, round, a quarter where that is whole. */
function tickStep(rough, own) {
  const quarter = 2.5 * 10 ** Math.floor(Math.log10(rough));
  const isWhole = own === 0 || Math.abs(quarter / own - Math.round(quarter / own)) < 1e-9;
  return Math.max(rough <= quarter && rough > 0.8 * quarter && isWhole ? quarter : roundUp(rough), own);
}

function dateStep(rough) {
  const year = 365.2425 * DAY;
  if (rough > 0.6 * year) return Math.ceil(rough / year) * year;
  return UNITS.find((unit) => unit >= rough) ?? Math.ceil(rough / DAY) * DAY;
}

function unevenTicks(edges, most) {
  const last = edges.length - 1;
  return Array.from({ length: most }, (_, k) => edges[Math.round((k * last) / (most - 1))]);
}

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

/** A column of at most so many cells of its grid has a share on each bar, and each cell below it. */
const FEW = 7;
/** Whether each bar of a column of numbers is one cell of its grid, and these are few. */
export const areFewCells = ({ edges, step }) =>
  Boolean(step) && edges.length <= FEW + 1 && edges[1] - edges[0] < 1.5 * step;

// The rules of `cards.py`: when a bar is broken, so that it does not make all others too small to be seen.
const [CUT, CUT_AT, LEAST, LABELLED] = [2.5, 1.6, 0.05, 0.25];

/** The height that reaches the top, and whether a bar is broken there. */
export function scaleOf(heights) {
  const high = heights.toSorted((p, q) => q - p);
  const rest = high.slice(1).reduce((sum, value) => sum + value, 0);
  const isCut = high.length > 2 && high[0] > CUT * high[1] && rest >= LEAST * (high[0] + rest);
  return { top: isCut ? CUT_AT * high[1] : Math.max(high[0], 1e-12), isCut };
}

/** The tallest bar, if it is broken or holds much, so that it is labelled with its share. */
export function labelled(mass, heights, { top, isCut }) {
  const tallest = heights.indexOf(Math.max(...heights));
  return mass[tallest] >= LABELLED || (isCut && heights[tallest] > top) ? [tallest] : [];
}

/** Bars with a little room between them, from 0 below to 100 at the top; one that is broken has a slanting gap. */
export function bars(x, heights, top) {
  let path = "";
  for (let k = 0; k < heights.length; k += 1) {
    const height = (100 * heights[k]) / top;
    if (height < 0.05) continue;
    const room = Math.min(0.35, 0.14 * (x[k + 1] - x[k]));
    const [from, to] = [x[k] + room, x[k + 1] - room].map((at) => at.toFixed(2));
    path += height > 100.0001 ? `M${from} 100V34L${to} 26V100ZM${from} 26V0H${to}V18Z` : `M${from} 100V${(100 - height).toFixed(2)}H${to}V100Z`;
  }
  return path;
}

/** One outline of all bars. */
export function outline(x, heights, top) {
  let path = `M${x[0]} 100`;
  for (let k = 0; k < heights.length; k += 1)
    path += `V${Math.max(0, 100 - (100 * heights[k]) / top).toFixed(2)}H${x[k + 1].toFixed(2)}`;
  return `${path}V100Z`;
}

/** The probability of more than the right end of each bin. */
export function later(mass) {
  let left = 1;
  return mass.map((share) => (left = Math.max(0, left - share)));
}

/** The curve of such probabilities from 100 % at the top, up to where they are learned; with the area below it. */
export function curve({ edges, until }, x, alive, isArea) {
  let path = `M${x[0]} 0`;
  let k = 0;
  for (; k < alive.length && edges[k + 1] <= until; k += 1) path += `L${x[k + 1].toFixed(2)} ${(100 * (1 - alive[k])).toFixed(2)}`;
  return isArea ? `${path}L${x[k].toFixed(2)} 100H${x[0]}Z` : path;
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
  if (areFewCells(column) && column.edges.length <= 7) return column.edges.slice(1).map((edge) => edge - 0.5 * column.step);
  if (column.axis === "log") return powers(column.edges, most);
  if (!line.even) return unevenTicks(column.edges, most);
  const rough = (line.high - line.low) / most;
  const whole = column.month && rough > 6 ? Math.ceil(rough / 12) * 12 : tickStep(rough, column.step ?? 0);
  const step = column.kind === "datetime" ? dateStep(rough) : whole;
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

/** Powers of ten on a logarithmic axis; the second edge where it has fewer than two. */
function powers([, ...edges], most) {
  const [low, high] = [Math.ceil(Math.log10(edges[0]) - 1e-9), Math.floor(Math.log10(edges.at(-1)) + 1e-9)];
  const by = Math.ceil((high - low + 1) / (most + 1));
  const found = [];
  for (let k = low; k <= high; k += by) found.push(10 ** k);
  return found.length > 1 ? found : [edges[0], edges.at(-1)];
}

function unevenTicks(edges, most) {
  const last = edges.length - 1;
  return Array.from({ length: most }, (_, k) => edges[Math.round((k * last) / (most - 1))]);
}

/** Pictures of one column over row numbers: a curve with bands for numbers, shaded squares for levels. */
import { svg } from "./dom.js";
import { percent, writer } from "./format.js";
import { ticks } from "./scale.js";

const [WIDTH, HEIGHT] = [420, 190];
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 8, 10, 22];
/** Most levels with a row of squares; the others share one. */
const LEVELS = 8;
const LETTERS = 13;

/**
 * Where row numbers are drawn.
 * @param {number} known - rows that are there
 * @param {number} next - rows to come, behind them
 */
function places(known, next, left = LEFT) {
  const n = Math.max(known + next, 1);
  const width = (WIDTH - left - RIGHT) / n;
  const labels = Array.from({ length: n }, (_, i) => (i < known ? `${i + 1}` : `+${i - known + 1}`));
  return { n, width, center: (i) => left + width * (i + 0.5), left: (i) => left + width * i, labels };
}

/** Labels below the picture: as many as there is room for, the first next row among them. */
function rowLabels(at, known, from, height) {
  const every = Math.max(1, Math.ceil(26 / at.width));
  return at.labels.flatMap((label, i) => {
    const isNext = i >= known;
    const place = isNext ? i - known : i;
    if (place % every) return [];
    const shown = isNext ? label : `${from + i + 1}`;
    return [svg("text", { class: "row-label", x: at.center(i), y: height - 6, "text-anchor": "middle" }, shown)];
  });
}

/**
 * A column of numbers.
 * @param {object} column - of the table
 * @param {{x: (number|null)[], from?: number, less?: (number|null)[], unknown?: object, next?: object|null,
 *   curves?: {name: string, mean: (number|null)[], band: (number|null)[][]|null}[]}} said
 */
export function numberChart(column, said) {
  const { x, next, from = 0 } = said;
  const steps = next?.mean.length ?? 0;
  const at = places(said.curves ? said.curves[0].mean.length : x.length, steps);
  const spans = [...Object.values(said.unknown ?? {}).flatMap(({ mean, band }) => [mean, ...band])];
  if (next) spans.push(...next.mean, ...next.band.flat());
  for (const { mean, band } of said.curves ?? []) spans.push(...mean, ...(band ?? []).flat());
  const all = [...x, ...spans].filter((value) => value !== null);
  const [low, high] = widened(all.length ? all : column.edges, column);
  const shownColumn = { ...column, edges: [low, high] };
  const write = writer({ ...column, edges: column.edges ?? [low, high] });
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  const children = [];
  for (const tick of ticks(shownColumn, 4)) {
    children.push(
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
      svg("text", { class: "row-label", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, write.tick(tick)),
    );
  }
  if (steps) {
    const edge = at.left(x.length);
    children.push(svg("line", { class: "now", x1: edge, x2: edge, y1: TOP, y2: HEIGHT - BOTTOM }));
    children.push(...bands(next.band, at, x.length, y), line(next.mean, at, x.length, y, "curve ahead"));
    next.mean.forEach((value, k) => {
      if (value === null) return;
      const [low90, , , high90] = next.band[k];
      const text = `${at.labels[x.length + k]}: mean ${write.mean(value)}, 90% from ${write.value(low90)} to ${write.value(high90)}`;
      children.push(dot(at.center(x.length + k), y(value), "ahead", text));
    });
  }
  for (const { name, mean, band } of said.curves ?? []) {
    if (band) children.push(...bands(band, at, 0, y));
    children.push(line(mean, at, 0, y, `curve ${name}`));
    mean.forEach((value, i) => {
      if (value !== null) children.push(dot(at.center(i), y(value), name, `${name}, row ${i + 1}: mean ${write.mean(value)}`));
    });
  }
  children.push(line(x, at, 0, y, "curve"));
  for (const [i, { mean, band }] of Object.entries(said.unknown ?? {})) {
    const place = at.center(Number(i));
    const text = `row ${from + Number(i) + 1}, unknown: ${write.mean(mean)}, 90% from ${write.value(band[0])} to ${write.value(band[3])}`;
    children.push(svg("line", { class: "whisker", x1: place, x2: place, y1: y(band[0]), y2: y(band[3]) }));
    children.push(dot(place, y(mean), "filled-in", text));
  }
  x.forEach((value, i) => {
    if (value === null) return;
    const odd = isOdd(said.less?.[i]);
    children.push(dot(at.center(i), y(value), odd ? "odd" : "", `row ${from + i + 1}: ${write.value(value)}${oddly(odd, said.less?.[i])}`));
  });
  children.push(...rowLabels(at, at.n - steps, from, HEIGHT));
  return picture(HEIGHT, `${column.name} by row number`, children);
}

/**
 * A column of levels: a square for each row and level, the darker the more probable.
 * @param {object} column
 * @param {{shares: (number[]|null)[], known?: boolean[], next?: number[][], from?: number, less?: (number|null)[],
 *   beside?: (number[]|null)[]}} said - beside: shares drawn in the lower half of each square
 */
export function levelChart(column, said) {
  const next = said.next ?? [];
  const all = [...said.shares, ...next];
  const at = places(said.shares.length, next.length, 100);
  const { rows, other } = levelsShown(column, [...all, ...(said.beside ?? [])]);
  const labels = [...rows.map((k) => column.labels[k] || "“”"), ...(other.length ? [`${other.length} others`] : [])];
  const height = 22 * labels.length + TOP + BOTTOM;
  const shareOf = (shares, r) => (r < rows.length ? shares[rows[r]] : other.reduce((sum, k) => sum + shares[k], 0));
  const children = [];
  labels.forEach((label, r) => {
    const top = TOP + 22 * r;
    const short = label.length > LETTERS ? `${label.slice(0, LETTERS - 1)}…` : label;
    children.push(svg("text", { class: "level-label", x: 94, y: top + 15, "text-anchor": "end" }, svg("title", {}, label), short));
    all.forEach((shares, i) => {
      const isNext = i >= said.shares.length;
      const name = isNext ? at.labels[i] : `row ${(said.from ?? 0) + i + 1}`;
      const lower = said.beside?.[i];
      const box = { x: at.left(i) + 0.5, width: Math.max(at.width - 1, 0.5) };
      const share = shares ? shareOf(shares, r) : null;
      if (share === null || share === undefined) return;
      const odd = share === 1 && said.known?.[i] && isOdd(said.less?.[i]);
      const beside = lower ? `; table: ${percent(shareOf(lower, r))}` : "";
      const cls = ["square", isNext ? "ahead" : "", odd ? "odd" : "", said.known && !said.known[i] && !isNext ? "filled-in" : ""].join(" ").trim();
      const text = `${name}: ${label} ${percent(share)}${beside}${oddly(odd, said.less?.[i])}`;
      children.push(
        svg("rect", { class: cls, ...box, y: top + 1, height: lower ? 10 : 20, "fill-opacity": opacity(share) }, svg("title", {}, text)),
      );
      if (lower)
        children.push(svg("rect", { class: "square table", ...box, y: top + 11, height: 10, "fill-opacity": opacity(shareOf(lower, r)) }, svg("title", {}, text)));
    });
  });
  if (next.length) {
    const edge = at.left(said.shares.length);
    children.push(svg("line", { class: "now", x1: edge, x2: edge, y1: TOP, y2: height - BOTTOM }));
  }
  children.push(...rowLabels(at, said.shares.length, said.from ?? 0, height));
  return picture(height, `${column.name} by row number`, children);
}

/** Shares of next rows, or of row numbers, as bars. @param {{name: string, share: (number|null)[], sign?: string}} said */
export function shareChart({ name, share, sign = "+" }) {
  const [height, at] = [120, places(share.length, 0)];
  const children = [];
  for (const tick of [0, 0.5, 1]) {
    const y = TOP + (height - TOP - BOTTOM) * (1 - tick);
    children.push(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }));
    children.push(svg("text", { class: "row-label", x: LEFT - 6, y: y + 4, "text-anchor": "end" }, percent(tick)));
  }
  const every = Math.max(1, Math.ceil(26 / at.width));
  share.forEach((value, i) => {
    if (value === null) return;
    const tall = (height - TOP - BOTTOM) * value;
    const box = { x: at.left(i) + 0.15 * at.width, width: 0.7 * at.width, y: height - BOTTOM - tall, height: tall };
    children.push(svg("rect", { class: "bar-of-share", ...box }, svg("title", {}, `${sign}${i + 1}: ${percent(value)}`)));
    if (i % every === 0)
      children.push(svg("text", { class: "row-label", x: at.center(i), y: height - 6, "text-anchor": "middle" }, `${sign}${i + 1}`));
  });
  return picture(height, name, children);
}

const picture = (height, name, children) =>
  svg("svg", { class: "timeline", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": name }, ...children);

/** Nothing is invisible but what has no probability. */
const opacity = (share) => (share > 0 ? Math.max(0.04, share).toFixed(3) : 0);

/** Whether fewer than 1 in 100 cells are less probable. */
export const isOdd = (less) => less !== null && less !== undefined && less < 0.01;
const oddly = (odd, less) => (odd ? ` (unusual: ${less > 0 ? percent(less) : "none"} of drawn cells are less probable)` : "");

function dot(x, y, kind, text) {
  return svg("circle", { class: `dot ${kind}`.trim(), cx: x, cy: y, r: kind === "odd" ? 5 : 3.2 }, svg("title", {}, text));
}

/** A curve through the values, broken where there is none. */
function line(values, at, first, y, kind) {
  let isDown = false;
  const steps = values.map((value, i) => {
    if (value === null) {
      isDown = false;
      return "";
    }
    const step = `${isDown ? "L" : "M"}${at.center(first + i).toFixed(1)} ${y(value).toFixed(1)}`;
    isDown = true;
    return step;
  });
  return svg("path", { class: kind, d: steps.join("") || "M0 0" });
}

/** The intervals that hold 90 and 50 %: [5 %, 25 %, 75 %, 95 %] for each row. */
function bands(band, at, first, y) {
  const area = (low, high, kind) => {
    const rows = band.map((ends, i) => [ends[low], ends[high], i]).filter(([a]) => a !== null);
    if (!rows.length) return svg("path", { class: kind, d: "M0 0" });
    const half = 0.5 * at.width;
    const up = rows.flatMap(([, b, i]) => [`${at.center(first + i) - half} ${y(b)}`, `${at.center(first + i) + half} ${y(b)}`]);
    const down = rows.toReversed().flatMap(([a, , i]) => [`${at.center(first + i) + half} ${y(a)}`, `${at.center(first + i) - half} ${y(a)}`]);
    return svg("path", { class: kind, d: `M${[...up, ...down].join("L")}Z` });
  };
  return [area(0, 3, "band"), area(1, 2, "band inner")];
}

/** The range of values with some room, never so narrow that differences nobody notices fill the picture. */
function widened(values, column) {
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  const [least, most] = column.edges ?? [low, high];
  const narrowest = Math.max(2 * (column.step ?? 0), 0.02 * (most - least)) || Math.abs(high) * 0.02 || 1;
  const room = Math.max(0.06 * (high - low), 0.5 * (narrowest - (high - low)));
  return [low - room, high + room];
}

/** The levels that have rows of their own, those with the largest probabilities, in the order of the column. */
function levelsShown(column, shares) {
  const n = column.labels.length;
  const most = Array.from({ length: n }, (_, k) => shares.reduce((top, one) => Math.max(top, one?.[k] ?? 0), 0));
  const places = [...most.keys()];
  if (n <= LEVELS) return { rows: places, other: [] };
  const rows = places.toSorted((a, b) => most[b] - most[a]).slice(0, LEVELS - 1).sort((a, b) => a - b);
  return { rows, other: places.filter((k) => !rows.includes(k)) };
}

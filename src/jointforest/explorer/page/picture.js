/** A card as a picture of its own: SVG text, and a PNG drawn from it. */
import { percent, writer } from "./format.js";
import { axis, ticks } from "./scale.js";
import { labelOf } from "./typed.js";

const WIDTH = 420;
const [LEFT, RIGHT, HEAD] = [14, 14, 62];
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const [NOW, BEFORE, INK, SOFT] = ["#2a8f86", "#dcd9d0", "#1b1e23", "#5a606a"];

const escaped = (text) =>
  String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
const text = (x, y, said, more = "") => `<text x="${x}" y="${y}" ${more}>${escaped(said)}</text>`;
const rect = (x, y, width, height, fill) =>
  `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(0, width).toFixed(1)}" height="${Math.max(0, height).toFixed(1)}" fill="${fill}"/>`;

/**
 * A card as SVG: its name, the evidence, and its bars or its histogram, always on white.
 * @param {object} column
 * @param {{now: object, before: object}} known
 * @param {string} sentence - the evidence
 * @param {number[]} shown - levels in their order, for a column of levels
 */
export function pictureOf(column, { now, before }, sentence, shown) {
  const body = column.levels ? bars(column, now, before, shown) : histogram(column, now, before);
  const height = HEAD + body.height + 16;
  const given = sentence ? `given ${sentence.length > 60 ? `${sentence.slice(0, 59)}…` : sentence}` : "without evidence";
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="${FONT}" font-size="13" fill="${INK}">` +
    rect(0, 0, WIDTH, height, "#ffffff") +
    text(LEFT, 24, column.name, 'font-weight="650" font-size="16"') +
    text(LEFT, 44, given, `fill="${SOFT}"`) +
    `<g transform="translate(0 ${HEAD})">${body.shapes}</g></svg>`
  );
}

function bars(column, now, before, shown) {
  const [label, value] = [150, 52];
  const room = WIDTH - LEFT - RIGHT - label - value;
  const shapes = shown.map((k, row) => {
    const y = 24 * row;
    const name = labelOf(column, k);
    return (
      text(LEFT, y + 13, name.length > 22 ? `${name.slice(0, 21)}…` : name) +
      rect(LEFT + label, y, room * before.mass[k], 16, BEFORE) +
      rect(LEFT + label, y + 3, room * now.mass[k], 10, NOW) +
      text(WIDTH - RIGHT, y + 13, percent(now.mass[k]), 'text-anchor="end"')
    );
  });
  return { shapes: shapes.join(""), height: 24 * shown.length };
}

function histogram(column, now, before) {
  const line = axis(column.edges);
  const write = writer(column);
  const [width, height] = [WIDTH - LEFT - RIGHT, 130];
  const heights = (mass) => mass.map((share, k) => line.height(share, k));
  const [a, b] = [heights(now.mass), heights(before.mass)];
  const { top, isCut } = scaleOf(a.map((value, k) => Math.max(value, b[k])));
  const x = column.edges.map((edge) => LEFT + width * line.position(edge));
  const draw = (values, fill, gap) =>
    values
      .map((value, k) => {
        const share = Math.min(1, value / top);
        return rect(x[k] + gap, height * (1 - share), x[k + 1] - x[k] - 2 * gap, height * share, fill);
      })
      .join("");
  const tallest = a.indexOf(Math.max(...a));
  const [from, to] = [x[tallest] - 1, x[tallest + 1] + 1];
  const label = text(to < 0.7 * WIDTH ? to + 3 : from - 3, 10, percent(now.mass[tallest]), `font-size="11" text-anchor="${to < 0.7 * WIDTH ? "start" : "end"}"`);
  const broken = `<path d="M${from} 26L${to} 18V24L${from} 32Z" fill="#ffffff"/>${label}`;
  const marks = ticks(column).map((at) =>
    text(LEFT + width * line.position(at), height + 17, write.tick(at), `text-anchor="middle" font-size="11" fill="${SOFT}"`),
  );
  const said = now.mean === null ? "" : text(LEFT, height + 40, `mean ${write.mean(now.mean)}`);
  return { shapes: draw(b, BEFORE, 0) + draw(a, NOW, 0.6) + (isCut && a[tallest] > top ? broken : "") + marks.join("") + said, height: height + 46 };
}

/** The height that reaches the top, and whether a bar is broken there: the rule of `cards/svg.py`. */
function scaleOf(heights) {
  const high = heights.toSorted((p, q) => q - p);
  const rest = high.slice(1).reduce((sum, value) => sum + value, 0);
  const isCut = high.length > 2 && high[0] > 2.5 * high[1] && rest >= 0.05 * (high[0] + rest);
  return { top: isCut ? 1.6 * high[1] : Math.max(high[0], 1e-12), isCut };
}

/** The PNG of an SVG text, twice as large so that it is sharp. @returns {Promise<Blob>} */
export async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.width;
  canvas.height = 2 * image.height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

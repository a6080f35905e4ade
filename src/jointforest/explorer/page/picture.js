/** A card as a picture of its own: SVG text, and a PNG drawn from it. */
import { percent, writer } from "./format.js";
import { areFewCells, axis, bars, labelled, outline, scaleOf, ticks } from "./scale.js";
import { labelOf } from "./typed.js";

const WIDTH = 420;
const [LEFT, RIGHT, HEAD] = [14, 14, 66];
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
  const body = column.levels ? ofLevels(column, now, before, shown) : histogram(column, now, before);
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

function ofLevels(column, now, before, shown) {
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
  const [a, b] = [now, before].map(({ mass }) => mass.map((share, k) => line.height(share, k)));
  const scale = scaleOf(a.map((value, k) => Math.max(value, b[k])));
  const x = column.edges.map((edge) => 100 * line.position(edge));
  const at = (percent) => (LEFT + (width * percent) / 100).toFixed(1);
  const area = `<g transform="translate(${LEFT} 0) scale(${width / 100} ${height / 100})"><path d="${outline(x, b, scale.top)}" fill="${BEFORE}"/><path d="${bars(x, a, scale.top)}" fill="${NOW}"/></g>`;
  const shown = areFewCells(column) ? a.map((_, k) => k) : labelled(now.mass, a, scale);
  const shares = shown.map((k) =>
    text(at(0.5 * (x[k] + x[k + 1])), (height * (1 - Math.min(1, a[k] / scale.top)) - 3).toFixed(1), percent(now.mass[k]), 'text-anchor="middle" font-size="11"'),
  );
  const marks = ticks(column).map((value) =>
    text(at(100 * line.position(value)), height + 17, write.tick(value), `text-anchor="middle" font-size="11" fill="${SOFT}"`),
  );
  const said = now.mean === null ? "" : text(LEFT, height + 40, `mean ${write.mean(now.mean)}`);
  return { shapes: area + shares.join("") + marks.join("") + said, height: height + 46 };
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

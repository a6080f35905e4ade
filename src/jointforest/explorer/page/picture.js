/** Cards as a picture of their own: SVG text, and a PNG drawn from it. */
import { download } from "./clipboard.js";
import { percent, writer } from "./format.js";
import { areFewCells, axis, bars, curve, labelled, later, outline, scaleOf, ticks } from "./scale.js";
import { labelOf } from "./labels.js";

const WIDTH = 420;
const [LEFT, RIGHT, ACROSS] = [14, 14, 3];
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const [NOW, BEFORE, A, INK, SOFT] = ["#2a8f86", "#dcd9d0", "#e9b48c", "#1b1e23", "#5a606a"];

const escaped = (text) =>
  String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
const text = (x, y, said, more = "") => `<text x="${x}" y="${y}" ${more}>${escaped(said)}</text>`;
const rect = (x, y, width, height, fill) =>
  `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(0, width).toFixed(1)}" height="${Math.max(0, height).toFixed(1)}" fill="${fill}"/>`;

/**
 * Cards as SVG: the evidence, and each card's name with its bars or its histogram, always on white.
 * @param {{column: object, now: object, before: object, shown: number[]}[]} cards - shown: levels in their order
 * @param {string} sentence - the evidence
 * @param {string|null} kept - the evidence of `before`, where that is compared with
 */
export function pictureOf(cards, sentence, kept) {
  const behind = kept === null ? BEFORE : A;
  const said = kept === null ? [["", sentence ? `given ${sentence}` : "without evidence"]] : [[behind, `A: ${kept || "no evidence"}`], [NOW, `B: ${sentence || "no evidence"}`]];
  const across = Math.min(ACROSS, cards.length);
  const most = Math.floor(60 * across);
  const head = said.map(([colour, words], k) => {
    const y = 24 + 20 * k;
    const short = words.length > most ? `${words.slice(0, most - 1)}…` : words;
    return (colour && rect(LEFT, y - 10, 12, 10, colour)) + text(LEFT + (colour ? 18 : 0), y, short, `fill="${SOFT}"`);
  });
  let top = 20 + 20 * said.length;
  let shapes = "";
  for (let from = 0; from < cards.length; from += across) {
    const row = cards.slice(from, from + across).map((card) => (card.column.levels ? ofLevels : histogram)(card, behind));
    row.forEach((body, k) => {
      const name = text(LEFT, 16, cards[from + k].column.name, 'font-weight="650" font-size="16"');
      shapes += `<g transform="translate(${WIDTH * k} ${top})">${name}<g transform="translate(0 36)">${body.shapes}</g></g>`;
    });
    top += 52 + Math.max(...row.map(({ height }) => height));
  }
  const width = WIDTH * across;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top}" viewBox="0 0 ${width} ${top}" font-family="${FONT}" font-size="13" fill="${INK}">` +
    `${rect(0, 0, width, top, "#ffffff")}${head.join("")}${shapes}</svg>`
  );
}

function ofLevels({ column, now, before, shown }, behind) {
  const both = (write) => (behind === A ? `${write(before)} → ${write(now)}` : write(now));
  const [label, value] = behind === A ? [130, 110] : [150, 52];
  const room = WIDTH - LEFT - RIGHT - label - value;
  const shapes = shown.map((k, row) => {
    const y = 24 * row;
    const name = labelOf(column, k);
    return (
      text(LEFT, y + 13, name.length > 20 ? `${name.slice(0, 19)}…` : name) +
      rect(LEFT + label, y, room * before.mass[k], 16, behind) +
      rect(LEFT + label, y + 3, room * now.mass[k], 10, NOW) +
      rect(LEFT + label + room * before.mass[k] - 1, y, 2, 16, behind) +
      text(WIDTH - RIGHT, y + 13, both(({ mass }) => percent(mass[k])), 'text-anchor="end"')
    );
  });
  return { shapes: shapes.join(""), height: 24 * shown.length };
}

function histogram({ column, now, before }, behind) {
  const line = axis(column.edges);
  const write = writer(column);
  const [width, height] = [WIDTH - LEFT - RIGHT, 130];
  const [a, b] = [now, before].map(({ mass }) => mass.map((share, k) => line.height(share, k)));
  const scale = scaleOf(a.map((value, k) => Math.max(value, b[k])));
  const x = column.edges.map((edge) => 100 * line.position(edge));
  const at = (percent) => (LEFT + (width * percent) / 100).toFixed(1);
  const isSurvival = column.axis === "survival";
  const line_ = (mass, isArea) => curve(column, x, later(mass), isArea);
  const shapes = isSurvival
    ? `<path d="${line_(before.mass, true)}" fill="${behind}"/><path d="${line_(now.mass, false)}" fill="none" stroke="${NOW}" stroke-width="2" vector-effect="non-scaling-stroke"/>`
    : `<path d="${outline(x, b, scale.top)}" fill="${behind}"/><path d="${bars(x, a, scale.top)}" fill="${NOW}"/><path d="${outline(x, b, scale.top)}" fill="none" stroke="${behind}" stroke-width="1.5" vector-effect="non-scaling-stroke"/>`;
  const area = `<g transform="translate(${LEFT} 0) scale(${width / 100} ${height / 100})">${shapes}</g>`;
  const shown = isSurvival ? [] : areFewCells(column) ? a.map((_, k) => k) : labelled(now.mass, a, scale);
  const shares = shown.map((k) =>
    text(at(0.5 * (x[k] + x[k + 1])), (height * (1 - Math.min(1, a[k] / scale.top)) - 3).toFixed(1), percent(now.mass[k]), 'text-anchor="middle" font-size="11"'),
  );
  const marks = ticks(column).map((value) =>
    text(at(100 * line.position(value)), height + 17, write.tick(value), `text-anchor="middle" font-size="11" fill="${SOFT}"`),
  );
  const mean = behind === A ? `${write.mean(before.mean)} → ${write.mean(now.mean)}` : write.mean(now.mean);
  const said = now.mean === null ? "" : text(LEFT, height + 40, `mean ${mean}`);
  return { shapes: area + shares.join("") + marks.join("") + said, height: height + 46 };
}

/** Hand a picture to the user as a file, "SVG" or "PNG". */
export async function savePicture(svg, name, kind) {
  if (kind === "SVG") download(svg, `${name}.svg`, "image/svg+xml");
  else download(await pngOf(svg), `${name}.png`, "image/png");
}

/** The PNG of an SVG text, twice as large so that it is sharp. @returns {Promise<Blob>} */
async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.width;
  canvas.height = 2 * image.height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

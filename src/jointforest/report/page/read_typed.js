/** Short texts as conditions, for a report that has no Python to ask; `read_short` of Python reads more. Pure functions. */
import { momentOf } from "./dates.js";
import { Refused } from "./errors.js";
import { labelOf } from "./typed.js";

const NUMBER = "[-−+]?(?:(?:\\d{1,3}(?:,\\d{3})+|\\d+)\\.?\\d*|\\.\\d+)(?:e[-+]?\\d+)?";
const SIDE = new RegExp(`^(<=|>=|≤|≥|<|>|=|==)?\\s*(${NUMBER})$`, "i");
const BOTH = new RegExp(`^(${NUMBER})\\s*(?:to|\\.\\.+|…|–|-)\\s*(${NUMBER})$`, "i");
const MORE = new RegExp(`^(${NUMBER})\\s*\\+$`, "i");
const FORMS = {
  number: "40, 20-30, 40+, < 5, or missing",
  date: "2024-03-01, >= 2024-03-01, 2024-03-01 to 2024-04-01, or missing",
  levels: "a level or its beginning, A or B, not A, or missing",
};

/**
 * The condition that a short text says of a column. Without Python only the plain forms are read.
 * @param {string} text
 * @param {import("./state.js").Column} column
 * @throws {Refused} with the forms that are read
 */
export function readTyped(text, column) {
  if (/^(is )?missing$/i.test(text)) return { missing: true };
  const read = column.levels ? parseLevels : column.kind === "datetime" ? parseDate : parseNumber;
  const found = read(text, column);
  if (!found) throw new Refused(`This file cannot read “${text}”: it needs Python. Write ${FORMS[sortOf(column)]}.`);
  return found;
}

const sortOf = (column) => (column.levels ? "levels" : column.kind === "datetime" ? "date" : "number");

function parseNumber(text) {
  const number = (word) => Number(word.replace(/,/g, "").replace("−", "-"));
  const both = BOTH.exec(text);
  if (both) return { low: number(both[1]), high: number(both[2]), low_in: true, high_in: true };
  const more = MORE.exec(text);
  if (more) return onOneSide(">=", number(more[1]));
  const side = SIDE.exec(text);
  return side ? onOneSide(side[1] ?? "=", number(side[2])) : null;
}

/** Dates as 2024-03-01 or 2024-03-01 12:30, by the clocks of the column's zone. */
function parseDate(text, column) {
  const date = (word) => momentOf(word.trim().replace(/^'(.*)'$/, "$1"), column.zone);
  const both = /^([^<>=≤≥]+?)\s+(?:to|and|–)\s+([^<>=≤≥]+)$/i.exec(text);
  if (both) {
    const [low, high] = [date(both[1]), date(both[2])];
    return low === null || high === null ? null : { low, high, low_in: true, high_in: true };
  }
  const [, sign, word] = /^(<=|>=|≤|≥|<|>|==?)?(.*)$/s.exec(text);
  const x = date(word);
  return x === null ? null : onOneSide(sign ?? "=", x);
}

function onOneSide(sign, x) {
  if (sign.startsWith("=")) return { low: x, high: x, low_in: true, high_in: true };
  const closed = sign !== "<" && sign !== ">";
  return sign === "<" || sign === "<=" || sign === "≤"
    ? { low: null, high: x, low_in: true, high_in: closed }
    : { low: x, high: null, low_in: closed, high_in: true };
}

function parseLevels(text, column) {
  const size = column.levels.length;
  const labels = Array.from({ length: size }, (_, k) => labelOf(column, k));
  const whole = findLevel(text, labels);
  if (whole !== null) return { levels: [whole] };
  const not = /^not\s+(.*)$/is.exec(text);
  const places = (not ? not[1] : text).split(/\s+or\s+|,\s+/i).map((word) => findLevel(word.trim(), labels));
  if (places.some((place) => place === null)) return null;
  const named = new Set(places);
  const levels = [...Array(size).keys()].filter((k) => named.has(k) !== Boolean(not));
  return levels.length ? { levels } : null;
}

/** The level that is written so; else the only one that begins so, in any case. */
function findLevel(word, labels) {
  const exact = labels.indexOf(word);
  if (exact >= 0) return exact;
  const low = word.toLowerCase();
  const begin = labels.flatMap((label, k) => (label.toLowerCase().startsWith(low) ? [k] : []));
  const same = begin.filter((k) => labels[k].toLowerCase() === low);
  return same.length === 1 ? same[0] : begin.length === 1 ? begin[0] : null;
}

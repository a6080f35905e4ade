/** Numbers, dates and probabilities as people read them. */

import { local } from "./dates.js";

const LOCALE = "en-GB";
const DAY = 86_400_000;
const one = new Intl.NumberFormat(LOCALE, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });
const five = new Intl.NumberFormat(LOCALE, { maximumSignificantDigits: 5, useGrouping: "min2" });
const compact = new Intl.NumberFormat(LOCALE, {
  notation: "compact",
  compactDisplay: "long",
  maximumSignificantDigits: 3,
});

/** A share of 1 as per cent with one decimal; what is not 0 or 1 never looks like it. */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share === 0 || share === 1) return share ? "100%" : "0%";
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share < 1 && share > 0.9995) return ">99.9%";
  return one.format(share);
}

/** A whole number with groups of three. */
export const count = (n) => whole.format(n);

/**
 * A probability as "1 row in 37".
 * @param {number|null} probability
 * @param {number|null} log - its natural logarithm, for those too small to be a number
 */
export function oneIn(probability, log) {
  if (log === null || log === undefined) return "no row";
  if (probability !== null && probability > 1.000001) return "a density";
  if (probability > 0.9999999) return "every row";
  if (probability > 0.5) return `${bestRatio(probability)}`;
  const rows = Math.exp(-log);
  if (rows < 1e4) return `1 row in ${rows < 9.95 ? tenths.format(rows) : whole.format(rows)}`;
  if (rows < 1e15) return `1 row in ${compact.format(rows)}`;
  return `1 row in 10${superscript(Math.round(-log / Math.LN10))}`;
}

/** A share above a half as "2 rows in 3", the nearest with at most 20 rows, else per cent. */
function bestRatio(share) {
  for (let rows = 2; rows <= 20; rows += 1) {
    const many = Math.round(share * rows);
    if (many < rows && Math.abs(many / rows - share) < 0.01) return `${many} rows in ${rows}`;
  }
  return share > 0.95 ? "nearly every row" : `${one.format(share)} of rows`;
}

/** A power of ten, as 10⁻¹⁹. */
export const superscript = (n) =>
  String(n)
    .replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)])
    .replace("-", "⁻");

/** A number of no column that is known here, with five digits. */
export const number = (x) => minus(five.format(x));

/** Bits with two digits. */
export function bits(amount) {
  return amount < 0.005 ? "0" : amount.toFixed(amount < 10 ? 2 : 0);
}

/**
 * How the values of a column are written.
 * @param {{kind: string, edges: number[]|null, step?: number|null, zone?: string|null, month?: string|null}} column
 * @returns {{value: (x: number) => string, mean: (x: number) => string, tick: (x: number) => string}}
 */
export function writer(column) {
  const month = (x) => monthText(x, column.month);
  if (column.month) return { value: month, mean: month, tick: month };
  const edges = column.edges ?? [0, 1];
  const span = Math.max(edges[edges.length - 1] - edges[0], Number.MIN_VALUE);
  return column.kind === "datetime"
    ? dates(span, column)
    : numbers(span, Math.max(Math.abs(edges[0]), Math.abs(edges.at(-1))), column);
}

/** A month, counted from January 1970, in a pattern such as %m/%Y. */
export function monthText(x, pattern) {
  const day = new Date(Date.UTC(1970, Math.round(x)));
  const form = (month) => new Intl.DateTimeFormat("en", { month, timeZone: "UTC" }).format(day);
  const parts = { Y: day.getUTCFullYear(), y: String(day.getUTCFullYear()).slice(2), m: form("2-digit"), b: form("short"), B: form("long") };
  return pattern.replace(/%\^?(\w)/g, (_, part) => parts[part]);
}

function numbers(span, largest, column) {
  const integer = Number.isInteger(column.step);
  const decimals = integer ? 0 : Math.min(12, Math.max(0, 3 - Math.ceil(Math.log10(span))));
  const far = largest >= 1e9 || (!integer && span < 1e-6);
  const form = (digits) =>
    new Intl.NumberFormat(
      LOCALE,
      far
        ? { notation: "scientific", maximumSignificantDigits: 4 }
        : { maximumFractionDigits: digits, useGrouping: largest >= 1e4, signDisplay: "negative" },
    );
  const short = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumSignificantDigits: 3 });
  const value = form(decimals);
  const mean = form(
    integer ? Math.min(2, Math.max(0, 3 - Math.ceil(Math.log10(span)))) || (span < 200 ? 1 : 0) : decimals,
  );
  return {
    value: (x) => minus(value.format(x)),
    mean: (x) => minus(mean.format(x)),
    tick: (x) => minus(largest >= 1e5 ? short.format(x) : value.format(x)),
  };
}

const minus = (text) => text.replace(/^-/, "−");

function dates(span, column) {
  const timeZone = column.zone ?? "UTC";
  const form = (options) => new Intl.DateTimeFormat(LOCALE, { timeZone, ...options });
  const digits = span < DAY / 12 ? 8 : 5;
  const short =
    span > 1500 * DAY
      ? form({ year: "numeric" })
      : span > 100 * DAY
        ? form({ month: "short", year: "2-digit" })
        : span > 3 * DAY
          ? form({ day: "numeric", month: "short" })
          : form({ hour: "2-digit", minute: "2-digit" });
  const write = (x) => {
    const { day, clock } = local(x, timeZone);
    return column.step >= DAY ? day : `${day} ${clock.slice(0, digits)}`;
  };
  const mean = (x) => write(column.step >= DAY ? x + DAY / 2 : x); // the nearest day
  return { value: write, mean, tick: (x) => short.format(x) };
}

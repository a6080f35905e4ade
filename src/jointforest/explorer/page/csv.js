/** Reads CSV text. */

/**
 * Rows of cells of CSV text (RFC 4180): commas, or semicolons or tabs where the first line has those instead.
 * @param {string} text
 * @returns {string[][]}
 */
export function readCsv(text) {
  const first = text.slice(0, text.search(/[\r\n]|$/));
  const mark = [",", ";", "\t"].find((sign) => first.includes(sign)) ?? ",";
  const rows = [];
  let row = [];
  let cell = "";
  let inQuotes = false;
  const end = () => {
    row.push(cell);
    cell = "";
  };
  for (let k = text.charCodeAt(0) === 0xfeff ? 1 : 0; k < text.length; k += 1) {
    const sign = text[k];
    if (inQuotes) {
      if (sign !== '"') cell += sign;
      else if (text[k + 1] === '"') {
        cell += '"';
        k += 1;
      } else inQuotes = false;
    } else if (sign === '"' && cell === "") inQuotes = true;
    else if (sign === mark) end();
    else if (sign === "\n" || sign === "\r") {
      if (sign === "\r" && text[k + 1] === "\n") k += 1;
      end();
      rows.push(row);
      row = [];
    } else cell += sign;
  }
  if (cell || row.length) {
    end();
    rows.push(row);
  }
  return rows.filter((cells) => cells.length > 1 || cells[0] !== "");
}

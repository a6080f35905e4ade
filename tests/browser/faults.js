/**
 * What is wrong with the layout of an element: text that is cut off, overlaps other text, or lies beyond the screen.
 * A function for `page.evaluate`.
 */
(rootName) => {
  const SLACK = 1.5; // pixels
  const EXTRA = 3; // pixels that a box of text may be higher than its line
  const LAYERS = ".tour, .top, .readout, .ways, .atom"; // may lie above other text
  const SHORT = /(?<![\p{L}\p{N}])[\p{L}\p{N}]{2,12}(?![\p{L}\p{N}])/gu; // words for which there is always room
  const SILENT = "script, style, option, select, title, textarea, noscript, .unseen";
  const host = document.querySelector(rootName);
  const root = host.shadowRoot ?? host;
  const found = new Set();
  const texts = [];

  const tidy = (text) => text.replace(/\s+/g, " ").trim();
  const isSeen = (node) =>
    node.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const where = (node) => {
    const near = node.closest("[data-name], [data-panel], section, header, footer, nav");
    return `<${node.localName} class="${node.className.baseVal ?? node.className}"> in ${near?.dataset.name ?? near?.dataset.panel ?? near?.className}`;
  };
  const say = (what, text, node) => found.add(`${what}: "${text}" ${where(node)}`);

  /** The end of a text may be left out if all of it is told where the pointer rests. */
  function isToldInFull(node, text) {
    for (let at = node; at; at = at.parentElement) if (at.title && tidy(at.title).includes(text)) return true;
    return false;
  }

  /** What is seen of a box of text in the elements around it; null if nothing is. Says if one of them cuts it off. */
  function seenPart(box, text, parent) {
    let { left, right, top, bottom } = box;
    for (let at = parent; at && at !== document.documentElement; at = at.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(at);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const frame = at.getBoundingClientRect();
      const hides = (way) => way === "hidden" || way === "clip";
      const isBeyondX = left < frame.left - SLACK || right > frame.right + SLACK;
      const isBeyondY = top < frame.top - EXTRA || bottom > frame.bottom + EXTRA;
      if ((hides(overflowX) && isBeyondX) || (hides(overflowY) && isBeyondY))
        if (!isToldInFull(parent, tidy(parent.textContent))) say("cut off", text, parent);
      [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
      [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
      if (left >= right || top >= bottom) return null;
    }
    return { left, right, top, bottom };
  }

  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = tidy(walker.currentNode.data);
    const parent = walker.currentNode.parentElement;
    if (!text || parent.closest(SILENT) || !isSeen(parent)) continue;
    const range = document.createRange();
    for (const { 0: word, index } of walker.currentNode.data.matchAll(SHORT)) {
      range.setStart(walker.currentNode, index);
      range.setEnd(walker.currentNode, index + word.length);
      const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 1).map(({ top }) => Math.round(top)));
      const isUpright = getComputedStyle(parent).writingMode === "horizontal-tb";
      if (lines.size > 1 && isUpright) say("broken word", word, parent);
    }
    range.selectNodeContents(walker.currentNode);
    for (const box of range.getClientRects()) {
      const part = box.width < 1 || box.height < 1 ? null : seenPart(box, text, parent);
      if (!part) continue;
      const { left, right, top, bottom } = part;
      if (left < -SLACK || right > document.documentElement.clientWidth + SLACK) say("beyond the screen", text, parent);
      const margin = 0.18 * (bottom - top); // a box of text is higher than its letters
      texts.push({ text, parent, layer: parent.closest(LAYERS), left, right, top: top + margin, bottom: bottom - margin });
    }
  }

  texts.sort((a, b) => a.top - b.top);
  texts.forEach((a, i) => {
    for (let j = i + 1; j < texts.length && texts[j].top < a.bottom; j += 1) {
      const b = texts[j];
      if (a.layer !== b.layer || a.parent === b.parent) continue;
      const [wide, high] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - b.top];
      if (wide > 2 && high > 1) say(`overlap with "${b.text}"`, a.text, a.parent);
    }
  });

  for (const field of root.querySelectorAll("input[type=text], textarea")) {
    if (!isSeen(field)) continue;
    const isLong = field.scrollWidth > field.clientWidth + SLACK;
    if (field.value && isLong && !isToldInFull(field, field.value)) say("cut off", field.value, field);
  }
  for (const field of root.querySelectorAll("input[placeholder]")) {
    if (field.value || !isSeen(field)) continue;
    const pen = document.createElement("canvas").getContext("2d");
    const { fontWeight, fontSize, fontFamily, paddingLeft, paddingRight } = getComputedStyle(field);
    pen.font = `${fontWeight} ${fontSize} ${fontFamily}`;
    const room = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    if (pen.measureText(field.placeholder).width > room + SLACK) say("cut off", field.placeholder, field);
  }
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) found.add(`the page is ${scrollWidth} pixels wide, the screen ${innerWidth}`);
  return [...found];
}

// The explorer on the front page follows the light or dark theme of the page. If the page is opened from disk, the browser
// forbids access to the frame, and the explorer follows the theme of the system.

function follow(frame) {
  const root = frame.contentDocument?.documentElement;
  if (!root) return;
  const dark = document.documentElement.dataset.theme === "dark";
  root.style.colorScheme = dark ? "dark" : "light";
  for (const sheet of frame.contentDocument.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (rule.media && (rule.forDark ??= rule.media.mediaText.includes("dark"))) {
        rule.media.mediaText = dark ? "all" : "not all";
      }
    }
  }
}

const live = document.querySelector("iframe.live");
if (live) {
  live.addEventListener("load", () => follow(live));
  new MutationObserver(() => follow(live)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  follow(live);
}

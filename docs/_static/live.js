// The explorer on the front page follows the page's switch between light and dark. In a page opened from disk it may not
// be reached into: it follows the system then, as the page does until its switch is used.

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

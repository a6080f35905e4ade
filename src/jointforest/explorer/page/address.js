/** Where the view of a page is kept. */

/** In the address that the browser shows, and its title. */
export const IN_ADDRESS = {
  read: () => location.hash,
  write(hash) {
    if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname);
  },
  follow: (changed, options) => addEventListener("hashchange", changed, options),
  entitle(title) {
    document.title = title;
  },
};

/** Nowhere: a page inside another one, whose address is not its own. */
export const NOWHERE = { read: () => "", write() {}, follow() {}, entitle() {} };

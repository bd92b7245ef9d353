// What pages can do better with scripts: times in the viewer's zone, regions that stay fresh, buttons that are pressed
// once. Pages work without it. Nothing from elsewhere, nothing kept in the browser.
"use strict";

(() => {
  const refreshEvery = 5_000; // ms
  const refreshAtMost = 60_000; // ms, after failures
  const awayAfter = 10 * 60_000; // ms without a sign of the viewer: a page left open must not keep its session alive

  // Times

  const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.valueOf())) time.textContent = written.format(at);
    }
    for (const label of root.querySelectorAll("[data-clock]")) { // hours of a plot
      const at = new Date(label.dataset.clock);
      if (!Number.isNaN(at.valueOf())) label.textContent = clock.format(at);
    }
    for (const zone of root.querySelectorAll("[data-utc]")) zone.remove();
  }

  // Buttons that are pressed once. A page that comes back out of the browser's memory starts anew.

  function once(event) {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    for (const button of form.querySelectorAll("button[data-submit-once]")) button.setAttribute("aria-disabled", "true");
  }

  function anew(event) {
    if (!event.persisted) return;
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      for (const button of form.querySelectorAll("button[aria-disabled]")) button.removeAttribute("aria-disabled");
    }
  }

  // Regions that stay fresh: the same page is asked for again, and what has changed is put in place. A region that has
  // come to its end is data-still in the fresh page: that is put in place, too, and asked for no more.

  const touched = new WeakSet(); // regions in which somebody has typed or ticked
  let lastSign = Date.now();
  let wait = refreshEvery;

  function inUse(region) {
    const selection = document.getSelection();
    return touched.has(region) || region.contains(document.activeElement) ||
      (selection !== null && !selection.isCollapsed && selection.containsNode(region, true));
  }

  function put(region, fresh) {
    localTimes(fresh);
    const before = region.querySelectorAll("details");
    const after = fresh.querySelectorAll("details");
    if (before.length === after.length) after.forEach((details, i) => { details.open = before[i].open; });
    if (region.innerHTML === fresh.innerHTML && fresh.dataset.live) return;
    region.replaceWith(fresh);
  }

  async function refresh() {
    const regions = [...document.querySelectorAll("[data-live]")].filter((region) => !inUse(region));
    if (regions.length === 0) return;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.redirected || answer.status === 401 || answer.status === 403) return false; // logged out: the next click says so
    if (!answer.ok) throw new Error(`the page answers ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const region of regions) {
      const name = CSS.escape(region.dataset.live);
      const fresh = page.querySelector(`[data-live="${name}"], [data-still="${name}"]`);
      if (fresh !== null && !inUse(region)) put(region, document.adoptNode(fresh));
    }
    return true;
  }

  async function tick() {
    let goOn = true;
    try {
      if (!document.hidden && Date.now() - lastSign < awayAfter) goOn = await refresh() !== false;
      wait = refreshEvery;
    } catch {
      wait = Math.min(wait * 2, refreshAtMost);
    }
    if (goOn) setTimeout(tick, wait);
  }

  function touch(event) {
    const region = event.target.closest?.("[data-live]");
    if (region) touched.add(region);
  }

  // What only scripts can do is hidden until they are here.

  function printing() {
    for (const button of document.querySelectorAll("button[data-print]")) {
      button.hidden = false;
      button.addEventListener("click", () => window.print());
    }
  }

  localTimes(document);
  printing();
  document.addEventListener("submit", once);
  window.addEventListener("pageshow", anew);
  document.addEventListener("input", touch);
  for (const sign of ["pointermove", "pointerdown", "keydown", "scroll", "focusin"]) {
    document.addEventListener(sign, () => { lastSign = Date.now(); }, { passive: true, capture: true });
  }
  if (document.querySelector("[data-live]") !== null) setTimeout(tick, refreshEvery);
})();

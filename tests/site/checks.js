// What browser.py runs in each page: `check` says what is wrong with it, `contrast` which of its text is too faint.

const siteTest = (() => {
  const visible = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const words = (element) => element.textContent.trim().replace(/\s+/g, " ").slice(0, 80);
  const all = (selector) => [...document.querySelectorAll(selector)];

  /** The text nodes that readers see, formulas and code aside where `prose` is set. */
  function* texts(root, prose) {
    const skipped = "script, style, mjx-container" + (prose ? ", pre, code" : "");
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.data.trim() && !node.parentElement.closest(skipped)) yield node;
    }
  }

  /** Sentences on what is wrong, with the page's anchors and links. */
  async function check() {
    const wrong = [];
    if (window.MathJax?.startup) await MathJax.startup.promise;
    for (const fold of all("article details")) fold.open = true;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

    for (const image of document.images) {
      image.loading = "eager";
      await image.decode().catch(() => wrong.push(`the picture ${image.src} does not load`));
      if (!/^\S+ \S+ .*[.!?)]$/.test(image.alt)) wrong.push(`the alternative text of ${image.src} is no sentence: "${image.alt}"`);
    }
    for (const element of all("a[href], button")) {
      const name = element.textContent.trim() || element.ariaLabel || element.title || element.querySelector("img")?.alt;
      if (visible(element) && !name) wrong.push(`a link or button without a name: ${element.outerHTML.slice(0, 80)}`);
    }

    for (const formula of all("article .math")) {
      if (!formula.querySelector("mjx-container")) wrong.push(`not typeset: ${words(formula)}`);
    }
    for (const error of all("mjx-merror, [data-mjx-error]")) wrong.push(`a bad formula: ${words(error.closest(".math") ?? error)}`);
    for (const text of texts(document.querySelector("article"), true)) {
      const raw = text.data.match(/\$[^$]+\$|\\[([]|\\[a-zA-Z]+|\{\{.*\}\}|^\s*\|.*\|\s*$/);
      if (raw) wrong.push(`shown raw: ${raw[0].slice(0, 80)}`);
    }

    const width = document.documentElement.clientWidth;
    const outside = (element) => element.getBoundingClientRect().right > width + 1;
    if (document.documentElement.scrollWidth > width) wrong.push("the page is wider than the screen");
    for (const table of all("article table")) {
      const place = table.parentElement;
      if (visible(table) && place.scrollWidth > place.clientWidth + 1) wrong.push(`a table wider than the page: ${words(table)}`);
    }
    for (const element of all("td.verdict, article img, article p, article h1, article h2, article h3")) {
      if (visible(element) && outside(element)) wrong.push(`outside the screen: ${words(element)}`);
    }
    for (const code of all("article .input pre")) {
      if (innerWidth >= 1280 && code.scrollWidth > code.clientWidth + 1) wrong.push(`code is cut: ${words(code)}`);
    }
    for (const formula of all("div.math")) {
      const cut = formula.scrollWidth > formula.clientWidth + 1 && getComputedStyle(formula).overflowX !== "auto";
      if (visible(formula) && cut) wrong.push(`a formula is cut: ${words(formula)}`);
    }

    if (all("input[name=q]").length > 1) wrong.push("more than one search box");
    if (!document.querySelector("link[rel~=icon]")) wrong.push("no favicon");
    for (const name of ["description", "og:title", "og:description"]) {
      if (!document.querySelector(`meta[name="${name}"], meta[property="${name}"]`)?.content) wrong.push(`no ${name} in the head`);
    }
    return { wrong, anchors: all("[id]").map((element) => element.id), links: all("a[href]").map((link) => link.href) };
  }

  /** The text whose contrast with its ground is below 4.5 (WCAG 2.2, AA), each pair of colours once. */
  function contrast() {
    const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const seen = new Map();
    const rgba = (colour) => {
      if (!seen.has(colour)) {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        seen.set(colour, [...context.getImageData(0, 0, 1, 1).data]);
      }
      return seen.get(colour);
    };
    const over = (top, ground) => top.slice(0, 3).map((value, k) => (value * top[3] + ground[k] * (255 - top[3])) / 255);
    const ground = (element) => {
      if (!element) return rgba("Canvas").slice(0, 3);
      const own = rgba(getComputedStyle(element).backgroundColor);
      return own[3] === 255 ? own.slice(0, 3) : over(own, ground(element.parentElement));
    };
    const light = (colour) => {
      const [r, g, b] = colour.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const faint = new Map();
    for (const text of texts(document.body, false)) {
      const element = text.parentElement;
      if (!visible(element)) continue;
      const below = ground(element);
      const above = over(rgba(getComputedStyle(element).color), below);
      const [a, b] = [light(above), light(below)];
      const ratio = Math.max(a, b) / Math.min(a, b);
      if (ratio < 4.5) faint.set(`${above} on ${below}`, `${ratio.toFixed(2)}, ${above.map(Math.round)} on ${below.map(Math.round)}: ${words(element)}`);
    }
    return [...faint.values()];
  }

  /** Where a finger would press the first visible element of this kind. */
  function middle(selector) {
    const box = all(selector).find(visible).getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  }

  /** The pages that a search has found, once it has ended. */
  async function results() {
    for (const end = Date.now() + 10000; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
      if (/found \d+ page/.test(document.body.innerText)) break;
    }
    return all("#search-results li > a").map((link) => link.href);
  }

  return { check, contrast, middle, results };
})();

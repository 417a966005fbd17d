// Tables and long cells on narrow screens; without this script pages scroll sideways where they are too wide.

(() => {
  const VERDICTS = { holds: "good", consistent: "good", "control rejected": "good" };

  /** Tell each cell the name of its column, and verdicts their colour. */
  function label(table) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, column) => {
        cell.dataset.label = names[column];
        if (names[column] === "verdict") cell.classList.add("verdict", VERDICTS[cell.textContent.trim()] ?? "bad");
      });
    }
  }

  /** Stack the rows of a table that is wider than its place; one inside a closed fold has no width yet. */
  function fit(table) {
    const place = table.parentElement;
    if (!place.clientWidth) return;
    table.classList.remove("stacked");
    table.classList.toggle("stacked", place.scrollWidth > place.clientWidth); // of the place: it has padding
  }

  /** Fold long cells of code where they would fill a phone's screen. */
  function fold(cell) {
    const lines = cell.textContent.trimEnd().split("\n").length;
    if (lines <= 8) return;
    const details = document.createElement("details");
    details.className = "fold";
    details.innerHTML = `<summary>${lines} lines of code</summary>`;
    cell.replaceWith(details);
    details.append(cell);
  }

  const tables = [...document.querySelectorAll("article table.docutils")];
  tables.forEach(label);
  // The article's size changes with the screen's, with an opened fold and with every formula that is set.
  new ResizeObserver(() => tables.forEach(fit)).observe(document.querySelector("article"));
  if (matchMedia("(max-width: 46em)").matches) document.querySelectorAll("article .input").forEach(fold);
})();

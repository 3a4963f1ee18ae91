"use strict";
// Keys for the messages of a page, while one of them has the focus.
(() => {
  const rows = [...document.querySelectorAll(".mail > li, form.one")];
  const press = (name, row) => {
    const next = document.querySelector("input[name=next]");
    if (next) next.value = (rows[rows.indexOf(row) + 1] || row).id;
    row.querySelector(`button[name=${name}]`)?.click();
  };
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const keys = {
    s: row => press("spam", row),
    h: row => press("ham", row),
    u: row => (document.querySelector("#undo") || row.querySelector("button[name=undo]"))?.click(),
    Enter: row => row.querySelector("a")?.click(),
  };
  document.addEventListener("keydown", event => {
    const row = rows.find(each => each.contains(event.target));
    // Of a keyboard of another alphabet, the key at the same place.
    const key = event.key > "~" ? event.code.slice("Key".length).toLowerCase() : event.key;
    const isOwn = event.target === row || key !== "Enter";
    const isHeld = event.repeat && !steps[key]; // it would teach the next message, too
    if (!row || !isOwn || isHeld || event.ctrlKey || event.altKey || event.metaKey) return;
    const neighbour = rows[rows.indexOf(row) + steps[key]];
    const act = neighbour ? () => neighbour.focus() : keys[key];
    if (!act) return; // the browser's key: arrows scroll above the first row and below the last
    event.preventDefault();
    act(row);
  });
  // A key that comes before the answer does is meant for the next message, not for this one.
  document.addEventListener("submit", () => document.activeElement.blur());
  // The second click of a double click would meet another button once the page has reloaded.
  document.addEventListener("click", event => {
    if (event.detail > 1 && event.target.closest("button")) event.preventDefault();
  });
  const focusRow = () => (rows.find(row => "#" + row.id === location.hash) || rows[0])?.focus();
  focusRow();
  addEventListener("pageshow", focusRow); // Firefox drops the focus when one comes back to a row
  // Back and a reload return to the row that had the focus, as they restore how far one scrolled.
  document.addEventListener("focusin", event => {
    const row = rows.find(each => each.contains(event.target));
    if (row) history.replaceState(null, "", "#" + row.id);
  });
})();

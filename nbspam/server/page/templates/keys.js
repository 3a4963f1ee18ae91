"use strict";
// Keys for the messages of a page, while one of them has the focus.
(() => {
  const rows = [...document.querySelectorAll(".mail > li, form.one")];
  const here = rows.findIndex(row => "#" + row.id === location.hash);
  let at = Math.max(here, 0);
  const go = to => {
    at = Math.min(Math.max(to, 0), rows.length - 1);
    rows[at].focus();
  };
  const press = (name, row) => {
    const next = document.querySelector("input[name=next]");
    if (next) next.value = (rows[at + 1] || row).id;
    const button = row.querySelector(`button[name=${name}]`);
    if (button) button.click();
  };
  const keys = {
    ArrowDown: () => go(at + 1),
    ArrowUp: () => go(at - 1),
    s: row => press("spam", row),
    h: row => press("ham", row),
    u: row => (document.querySelector("#undo") || row.querySelector("button[name=undo]"))?.click(),
    Enter: row => row.querySelector("a")?.click(),
  };
  document.addEventListener("keydown", event => {
    const row = rows.find(each => each.contains(event.target));
    const isOwn = event.target === row || event.key !== "Enter";
    if (!row || !isOwn || event.ctrlKey || event.altKey || event.metaKey) return;
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    at = rows.indexOf(row);
    keys[event.key](row);
  });
  if (rows.length) go(at);
})();

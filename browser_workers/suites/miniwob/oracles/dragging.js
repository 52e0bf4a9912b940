// Oracles of pages where something is dragged.
"use strict";
{
  const { one, all, text, boxOf, middle, ordinal, click, drag, dragFrom } = window.millraceSteps;
  const oracles = window.millraceOracles;

  oracles["drag-box"] = () => {
    const small = one("#draggableSmall"), [x, y] = middle(boxOf(one("#draggableLarge")));
    const [smallX, smallY] = middle(boxOf(small));
    return Math.hypot(smallX - x, smallY - y) < 5 ? click(one("#subbtn")) : drag(small, x, y);
  };

  const FAR = 12;
  const shiftOf = (asked) => ({ left: [-FAR, 0], right: [FAR, 0], up: [0, -FAR], down: [0, FAR] })[asked.match(/left|right|up|down/)[0]];
  /** A shape is dragged away from where it was drawn. */
  const shove = (shape, asked) => {
    const [x, y] = middle(boxOf(shape)), [right, down] = shiftOf(asked);
    return shape.hasAttribute("transform") ? click(one("#subbtn")) : drag(shape, x + right, y + down);
  };
  oracles["drag-circle"] = (asked) => shove(one("#area circle"), asked);
  oracles["drag-single-shape"] = (asked) => shove(one("#area .black-shape"), asked);

  /** An item of a list is dropped just beyond the middle of the item whose place it takes. */
  const move = (items, from, to) => {
    const [x, y, , height] = boxOf(items[to]);
    return drag(items[from], x + 40, y + height / 2 + (to > from ? 6 : -6));
  };
  oracles["drag-items"] = (asked) => {
    const items = all("#sortable li"), from = items.findIndex((item) => text(item) === asked.match(/Drag (\S+)/)[1]);
    const last = items.length - 1;
    const to = /to the top/.test(asked) ? 0 : /bottom/.test(asked) ? last : /up by/.test(asked) ? from - 1
      : /down by/.test(asked) ? from + 1 : ordinal(asked) - 1;
    return move(items, from, to);
  };
  oracles["drag-sort-numbers"] = () => {
    const items = all("#sortable li"), numbers = items.map((item) => Number(text(item)));
    const sorted = [...numbers].sort((a, b) => a - b);
    const to = numbers.findIndex((number, index) => number !== sorted[index]);
    return to < 0 ? click(one("#subbtn")) : move(items, numbers.indexOf(sorted[to]), to);
  };

  /** Marks the text of a paragraph, from its first character to behind its last. */
  const highlight = (paragraph) => {
    const marked = getSelection().toString().replace(/\s/g, "");
    if (marked === paragraph.textContent.replace(/\s/g, "")) return click(one("#subbtn"));
    const range = document.createRange();
    range.selectNodeContents(paragraph);
    const lines = [...range.getClientRects()], first = lines[0], last = lines.at(-1);
    return dragFrom(first.left, first.top + first.height / 2, last.right + 2, last.top + last.height / 2);
  };
  oracles["highlight-text"] = () => highlight(one("#randomText"));
  oracles["highlight-text-2"] = (asked) => highlight(all("#randomText p")[ordinal(asked) - 1]);

  oracles["resize-textarea"] = (asked) => {
    const handle = one(".ui-resizable-se"), [x, y] = middle(boxOf(handle));
    if (one("#tt").dataset.millraceSize === undefined) one("#tt").dataset.millraceSize = `${$("#tt").width()},${$("#tt").height()}`;
    const [width, height] = one("#tt").dataset.millraceSize.split(",").map(Number);
    const by = /larger/.test(asked) ? 10 : -10;
    const grown = /width/.test(asked) ? $("#tt").width() - width : $("#tt").height() - height;
    return grown * by > 0 ? click(one("#submit")) : drag(handle, x + by, y + by);
  };
}

// What a value of a page's own world comes to, bounded before it leaves the page: texts of at most `most` characters, lists of at
// most 32 values, at most 200 values in all. Of operators and literals alone, for the page may have replaced every function.
(value, most) => {
  let left = 200;
  const text = (all) => {
    if (all.length <= most) return all;
    let beginning = "";
    for (let index = 0; index < most; index++) beginning += all[index];
    return beginning;
  };
  const copy = (each) => {
    if (typeof each === "string") return text(each);
    if (typeof each === "number" || typeof each === "boolean") return each;
    if (typeof each !== "object" || each === null || left-- <= 0) return null;
    const length = each.length;
    if (typeof length === "number" && length >= 0 && length % 1 === 0) {
      // Elements that are there already are the list's own: writing them runs no setter of the page's.
      const list = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
      if (length < list.length) list.length = length;
      for (let index = 0; index < list.length; index++) list[index] = copy(each[index]);
      return list;
    }
    const copied = { __proto__: null };
    for (const key in each) {
      if (left-- <= 0) break;
      const inner = each[key];
      if (typeof inner !== "undefined" && typeof inner !== "function") copied[text(key)] = copy(inner);
    }
    return copied;
  };
  return copy(value);
}

// What a value of a page's own world comes to, bounded before it leaves the page: texts of at most `most` characters, lists of at
// most 8 values, at most 200 values in all. Of operators and literals alone, for the page may have replaced every function.
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
    const at = (index) => copy(each[index]);
    switch (each.length) {
      case 0: return [];
      case 1: return [at(0)];
      case 2: return [at(0), at(1)];
      case 3: return [at(0), at(1), at(2)];
      case 4: return [at(0), at(1), at(2), at(3)];
      case 5: return [at(0), at(1), at(2), at(3), at(4)];
      case 6: return [at(0), at(1), at(2), at(3), at(4), at(5)];
      case 7: return [at(0), at(1), at(2), at(3), at(4), at(5), at(6)];
      case 8: return [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)];
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

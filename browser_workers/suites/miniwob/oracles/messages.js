// Oracles of pages with messages: mails, posts, contacts, a terminal's lines.
"use strict";
{
  const { one, all, text, shown, quoted, boxOf, openPoint, click, fill, press, named } = window.millraceSteps;
  const oracles = window.millraceOracles;

  const LINE_PX = 40;
  /** What stands in a box that is less high than one scroll: arrow keys move it, once something idle in it was clicked. */
  const reach = (element, box, idle) => {
    if (openPoint(element) || box.scrollHeight <= box.clientHeight) return click(element);
    if (!box.contains(getSelection().anchorNode)) return click(all(idle, box).find(openPoint));
    const [, top, , height] = boxOf(box), lines = Math.round((boxOf(element)[1] - top - height / 2) / LINE_PX);
    return press(...Array(Math.max(1, Math.min(20, Math.abs(lines)))).fill(lines > 0 ? "ArrowDown" : "ArrowUp"));
  };

  const mailOf = (sender) => all("#main .email-thread").find((mail) => text(one(".email-sender", mail)) === sender);
  const reachMail = (element) => reach(element, one("#main"), "#main-header h2");
  const reply = (words) => fill([[one("#reply-text"), words]], one("#send-reply"));
  const forward = (name) => fill([[one("#forward .forward-sender"), name]], one("#send-forward"));
  /** What is asked for is done at the mail in the list, or in the mail once it is open. */
  oracles["email-inbox"] = (asked) => {
    const mail = mailOf(asked.match(/by (\S+) and/)[1]);
    if (/trash|star/.test(asked)) return reachMail(one(/trash/.test(asked) ? ".trash" : ".star", mail));
    if (one("#reply")) return reply(quoted(asked)[0]);
    if (one("#forward")) return forward(asked.match(/email to (\S+)\./)[1]);
    if (one("#email")) return click(one(/reply/.test(asked) ? ".email-reply" : ".email-forward"));
    return reachMail(one(".email-subject", mail));
  };
  for (const kind of ["delete", "important", "forward", "noscroll", "reply", "star-reply"]) {
    oracles[`email-inbox-${kind}`] = oracles["email-inbox"];
  }

  oracles["phone-book"] = (asked) => {
    const [, name, property] = asked.match(/Find (.*) in the contact book and click on their (phone|email|address)/);
    return click(text(one("#contact .name")) === name ? one(`#contact .${property}`) : named("#pagination a", ">"));
  };

  const postsBy = (user) => all("#area .media").filter((post) => text(one(".username", post)) === user);
  const userOf = (asked) => asked.match(/@[^\s,.]+/)[0];
  const CONTROLS = { Reply: ".reply", Retweet: ".retweet", Like: ".like", Share: ".share" };
  const reachPost = (element) => reach(element, one("#area"), ".body");
  oracles["social-media"] = (asked) => {
    const [post] = postsBy(userOf(asked)), [wanted] = quoted(asked);
    if (CONTROLS[wanted] && one(CONTROLS[wanted], post)) return reachPost(one(CONTROLS[wanted], post));
    const item = all("ul li", post).find((each) => text(each).startsWith(wanted));
    return reachPost(shown(item) ? item : one(".more", post));
  };
  oracles["social-media-all"] = (asked) => {
    const controls = postsBy(userOf(asked)).map((post) => one(CONTROLS[quoted(asked)[0]], post));
    const number = asked.match(/on (\d+) posts?/);
    const wanted = number ? controls.slice(0, Number(number[1])) : controls;
    return reachPost(wanted.find((control) => !control.classList.contains("active")) || one("#submitRow button"));
  };
  oracles["social-media-some"] = oracles["social-media-all"];

  oracles["terminal"] = (asked) => {
    const target = one("#terminal-target");
    if (document.activeElement !== target) return click(one("#terminal"));
    const listed = all(".output").map((line) => line.textContent).at(-1).split(" ");
    const ending = asked.match(/extension (\.\S+)$/);
    const file = listed.find((name) => (ending ? name.endsWith(ending[1]) : !name.includes(".")));
    const known = all(".terminal-line .command").some((line) => line.textContent === "ls");
    const command = known ? `rm ${file}` : "ls";
    return press(...[...command].map((key) => (key === " " ? "Space" : key)), "Enter");
  };
}

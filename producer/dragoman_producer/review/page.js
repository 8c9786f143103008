"use strict";
// The page of a review. All text of documents enters the page through textContent alone.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const CHUNK = 200; // rows drawn at once: a page of 10,000 opens as fast as one of 200
  const TAG = /<(\/?)([gx])([1-9]\d{0,5})(\/?)>/g;
  // Controls, blanks without width and marks of direction: they are shown by their names.
  const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
  const CHIP = new RegExp(`${TAG.source}|${UNSEEN.source}`, "g");
  const VERDICTS = ["fail", "warn", "unchecked", "ok"];
  const at = (id) => document.getElementById(id);
  const rows = data.rows.map((row, index) => ({ ...row, index, key: `${row.document}\n${row.segment}` }));
  const byKey = new Map(rows.map((row) => [row.key, row]));
  const edits = new Map(); // key of a row -> {text, approved}
  const drawn = new Map(); // index of a row -> its element
  let shown = [];
  let current = -1; // place in `shown`

  // --- edits in this browser ------------------------------------------------------------------

  const STORE = `dragoman-review:${data.run}:${data.target_lang}:${data.page}`;

  function remember() {
    try {
      localStorage.setItem(STORE, JSON.stringify(exported()));
    } catch {
      at("count").textContent = "This browser keeps nothing: download the edits before you close the page.";
    }
  }

  function exported() {
    const list = [...edits].map(([key, edit]) => {
      const row = byKey.get(key);
      return {
        document: row.document, segment: row.segment, digest: row.digest,
        text: edit.text, approved: edit.approved,
      };
    });
    return { schema: 1, run: data.run, target_lang: data.target_lang, edits: list };
  }

  function imported(file) {
    if (!file || file.schema !== 1 || file.target_lang !== data.target_lang || !Array.isArray(file.edits)) {
      throw new Error(`not edits of a review into ${data.target_lang}`);
    }
    let taken = 0;
    for (const edit of file.edits) {
      const row = byKey.get(`${edit.document}\n${edit.segment}`);
      if (!row || row.digest !== edit.digest || typeof edit.text !== "string") continue;
      edits.set(row.key, { text: edit.text, approved: edit.approved === true });
      taken += 1;
    }
    return taken;
  }

  // --- values of a row ------------------------------------------------------------------------

  const edited = (row) => edits.get(row.key);
  const textOf = (row) => edited(row)?.text ?? row.target ?? "";
  const isChanged = (row) => edited(row) !== undefined && edited(row).text !== (row.target ?? "");

  function problemOf(row, text) {
    const wanted = [...row.source.matchAll(TAG)].map((match) => match[0]).sort();
    const found = [...text.matchAll(TAG)].map((match) => match[0]).sort();
    if (!text.trim()) return "It is empty: the source would stay in the document.";
    if (wanted.join() !== found.join()) {
      return wanted.length ? `It needs exactly these tags: ${wanted.join(" ")}` : "Its source has no tags.";
    }
    if (!nests(text)) return "A pair of tags is closed before one inside it.";
    if (row.max_chars && [...text.replace(TAG, "")].length > row.max_chars) {
      return `It is longer than ${row.max_chars} characters.`;
    }
    return "";
  }

  function nests(text) {
    const open = [];
    for (const [, close, letter, number] of text.matchAll(TAG)) {
      if (letter === "x") continue;
      if (!close) open.push(number);
      else if (open.pop() !== number) return false;
    }
    return open.length === 0;
  }

  // --- drawing ---------------------------------------------------------------------------------

  function element(name, properties = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  function withTags(text) {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(CHIP)) {
      parts.push(text.slice(end, match.index), element("span", { className: "tag", textContent: nameOf(match[0]) }));
      end = match.index + match[0].length;
    }
    parts.push(text.slice(end));
    return parts;
  }

  const nameOf = (found) => found.startsWith("<") ? found
    : `U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

  function draw(row) {
    const edit = edited(row);
    const text = textOf(row);
    const state = edit ? (isChanged(row) ? "edited" : "approved") : "";
    const meta = element("p", { className: "meta" },
      element("span", { className: "verdict", textContent: row.verdict }),
      element("span", { textContent: row.document }),
      element("span", { textContent: row.place }),
      ...(row.origin === "new" ? [] : [element("span", { textContent: row.origin })]),
      ...(state ? [element("strong", { textContent: state })] : []));
    const source = element("p", { lang: data.source_lang ?? "", dir: "auto" }, ...withTags(row.source));
    const target = element("p", {
      className: text ? "target" : "target none", lang: text ? data.target_lang : "en", dir: "auto",
      onclick: () => { go(shown.indexOf(row)); edit_(row); },
    }, ...(text ? withTags(text) : ["not translated"]));
    const reasons = row.reasons.map((reason) => element("li", {},
      element("strong", { textContent: reason.gate }), reason.detail ? `: ${reason.detail}` : ""));
    const button = (label, act) => element("button", { type: "button", textContent: label, onclick: act });
    const made = element("article", { tabIndex: -1, ariaLabel: `${row.document}, ${row.place}, ${row.verdict}` },
      meta, element("div", { className: "sides" }, source, target),
      ...(reasons.length ? [element("ul", { className: "reasons" }, ...reasons)] : []),
      ...(edit && problemOf(row, text) ? [element("p", { className: "problem", textContent: problemOf(row, text) })] : []),
      element("div", { className: "actions" },
        button("Edit", () => { go(shown.indexOf(row)); edit_(row); }),
        ...(edit ? [button("Undo", () => undo(row))] : [button("Approve", () => approve(row))])));
    made.dataset.verdict = row.verdict;
    made.addEventListener("focus", () => { current = shown.indexOf(row); });
    return made;
  }

  function redraw(row) {
    const old = drawn.get(row.index);
    if (!old) return;
    const fresh = draw(row);
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(fresh);
    drawn.set(row.index, fresh);
    if (hadFocus) fresh.focus();
    count();
  }

  function drawMore(until = drawn.size + CHUNK) {
    const part = shown.slice(drawn.size, until);
    at("rows").append(...part.map((row) => {
      const made = draw(row);
      drawn.set(row.index, made);
      return made;
    }));
    at("more").hidden = drawn.size >= shown.length;
    at("more").textContent = `${(shown.length - drawn.size).toLocaleString()} more below`;
  }

  function count() {
    const changed = edits.size;
    at("count").textContent = `${shown.length.toLocaleString()} of ${rows.length.toLocaleString()} segments`
      + (changed ? `, ${changed.toLocaleString()} edited or approved` : "");
    at("download").disabled = changed === 0;
  }

  // --- filters ---------------------------------------------------------------------------------

  function filter() {
    const chosen = new Set([...document.querySelectorAll("#verdicts input:checked")].map((box) => box.value));
    const [file, reason] = [at("document").value, at("reason").value];
    const words = at("search").value.toLocaleLowerCase();
    shown = rows.filter((row) => chosen.has(row.verdict)
      && (!file || row.document === file)
      && (!reason || row.reasons.some((each) => each.gate === reason))
      && (!at("edited").checked || edits.has(row.key))
      && (!words || [row.source, textOf(row), row.place].some((text) => text.toLocaleLowerCase().includes(words))));
    drawn.clear();
    current = -1;
    at("rows").replaceChildren();
    if (!shown.length) at("rows").append(element("p", { textContent: "No segment matches these filters." }));
    drawMore(CHUNK);
    count();
  }

  function fillFilters() {
    for (const verdict of VERDICTS) {
      const number = rows.filter((row) => row.verdict === verdict).length;
      const box = element("input", { type: "checkbox", value: verdict, checked: true, disabled: number === 0 });
      at("verdicts").append(element("label", {}, box, ` ${verdict} (${number.toLocaleString()})`));
    }
    const option = (value) => element("option", { value, textContent: value });
    at("document").append(...[...new Set(rows.map((row) => row.document))].map(option));
    at("reason").append(...[...new Set(rows.flatMap((row) => row.reasons.map((each) => each.gate)))].sort().map(option));
  }

  // --- actions ---------------------------------------------------------------------------------

  function go(place) {
    if (place < 0 || place >= shown.length) return;
    while (drawn.size <= place) drawMore();
    current = place;
    drawn.get(shown[place].index).focus();
  }

  function edit_(row) {
    const target = drawn.get(row.index)?.querySelector(".target");
    if (!target) return;
    const box = element("textarea", {
      value: textOf(row), lang: data.target_lang, dir: "auto", ariaLabel: `Translation of ${row.place}`,
    });
    const keep = () => {
      if (box.value !== textOf(row)) edits.set(row.key, { text: box.value, approved: false });
      if (edits.has(row.key) && !isChanged(row) && !edited(row).approved) edits.delete(row.key);
      remember();
      redraw(row);
    };
    box.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") { box.removeEventListener("blur", keep); box.blur(); redraw(row); go(shown.indexOf(row)); }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); const next = shown.indexOf(row) + 1; box.blur(); go(Math.min(next, shown.length - 1)); }
    });
    box.addEventListener("blur", keep, { once: true });
    target.replaceWith(box);
    box.style.height = `${box.scrollHeight + 4}px`;
    box.focus();
  }

  function approve(row) {
    if (row.target === null) return;
    edits.set(row.key, { text: row.target, approved: true });
    remember();
    redraw(row);
  }

  function undo(row) {
    edits.delete(row.key);
    remember();
    redraw(row);
  }

  function download() {
    const blob = new Blob([JSON.stringify(exported(), null, 1)], { type: "application/json" });
    const link = element("a", { href: URL.createObjectURL(blob), download: `edits-${data.target_lang}-${data.page}.json` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async function load(file) {
    try {
      const taken = imported(JSON.parse(await file.text()));
      remember();
      filter();
      at("count").textContent += `; ${taken.toLocaleString()} edits loaded`;
    } catch (error) {
      at("count").textContent = `${file.name}: ${error.message}`;
    }
  }

  const KEYS = {
    j: () => go(current + 1), ArrowDown: () => go(current + 1),
    k: () => go(Math.max(current - 1, 0)), ArrowUp: () => go(Math.max(current - 1, 0)),
    "/": () => at("search").focus(),
    Enter: () => current >= 0 && edit_(shown[current]),
    a: () => current >= 0 && (edited(shown[current]) ? undo : approve)(shown[current]),
    u: () => current >= 0 && undo(shown[current]),
    "?": () => at("help-button").click(),
  };

  document.addEventListener("keydown", (event) => {
    const busy = event.target.closest("input, select, textarea, button, a");
    if (busy || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  at("title").textContent = data.title;
  at("apply").textContent = data.apply;
  at("pages").append(...data.pages.flatMap((page, index) => [index ? " · " : "", page.href === null
    ? element("strong", { textContent: page.title })
    : element("a", { href: page.href, textContent: page.title })]));
  at("filters").addEventListener("input", filter);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("download").addEventListener("click", download);
  at("load").addEventListener("click", () => at("file").click());
  at("file").addEventListener("change", () => at("file").files[0] && load(at("file").files[0]));
  at("help-button").addEventListener("click", () => {
    at("help").hidden = !at("help").hidden;
    at("help-button").setAttribute("aria-expanded", String(!at("help").hidden));
  });
  new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && drawMore(), { rootMargin: "800px" })
    .observe(at("more"));

  try {
    imported(JSON.parse(localStorage.getItem(STORE) ?? "null"));
  } catch { /* nothing is kept, or not ours */ }
  fillFilters();
  filter();
})();

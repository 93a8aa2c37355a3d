// JSON as people paste it: comments, single quotes, bare names, trailing commas, Python's words, a fence around it, or
// a whole message of which it is the body.

const WORDS = { true: true, false: false, null: null, True: true, False: false, None: null, undefined: null };

/** Read JSON strictly, else forgivingly. `corrected` is true if it was not valid JSON.
 * @param {string} text @returns {{value: any, corrected: boolean} | {error: string}} */
export function readJson(text) {
  try {
    return { value: JSON.parse(text), corrected: false };
  } catch (strict) {
    for (const part of candidates(text)) {
      try {
        return { value: new Reader(part).document(), corrected: true };
      } catch {
        // The next candidate may be readable.
      }
    }
    return { error: String(/** @type {Error} */ (strict).message).replace(/^JSON\.parse: /, "") };
  }
}

/** @param {string} text */
function* candidates(text) {
  const trimmed = text.trim().replace(/^```\w*\s*|\s*```$/g, "");
  yield trimmed;
  const body = trimmed.search(/\r?\n\r?\n/);
  if (body > 0) yield trimmed.slice(body).trim();
  const from = trimmed.indexOf("{"), to = trimmed.lastIndexOf("}");
  if (from > 0 && to > from) yield trimmed.slice(from, to + 1);
}

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  document() {
    const value = this.value(0);
    this.skip();
    if (this.at < this.text.length) throw new SyntaxError(`more text at ${this.at}`);
    return value;
  }

  /** Step over white space and comments. */
  skip() {
    const found = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/|#[^\n]*)*/y;
    found.lastIndex = this.at;
    this.at += found.exec(this.text)?.[0].length ?? 0;
  }

  /** @param {string} mark */
  take(mark) {
    this.skip();
    if (this.text[this.at] !== mark) return false;
    this.at += 1;
    return true;
  }

  /** @param {number} depth @returns {any} */
  value(depth) {
    if (depth > 200) throw new SyntaxError("too deep");
    this.skip();
    const mark = this.text[this.at];
    if (mark === "{") return this.object(depth);
    if (mark === "[") return this.list(depth);
    if (mark === '"' || mark === "'") return this.string();
    const word = this.word();
    if (Object.hasOwn(WORDS, word)) return WORDS[/** @type {keyof WORDS} */ (word)];
    if (/^[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(word)) return Number(word.replaceAll("_", ""));
    throw new SyntaxError(`not a value: ${word}`);
  }

  /** @param {number} depth */
  object(depth) {
    /** @type {[string, any][]} */
    const pairs = [];
    this.take("{");
    while (!this.take("}")) {
      this.skip();
      const name = /["']/.test(this.text[this.at] ?? "") ? this.string() : this.word();
      if (!this.take(":")) throw new SyntaxError("a colon is missing");
      pairs.push([name, this.value(depth + 1)]);
      if (!this.take(",") && (this.skip(), this.text[this.at] !== "}")) throw new SyntaxError("a comma is missing");
    }
    return Object.fromEntries(pairs);
  }

  /** @param {number} depth */
  list(depth) {
    const items = [];
    this.take("[");
    while (!this.take("]")) {
      items.push(this.value(depth + 1));
      if (!this.take(",") && (this.skip(), this.text[this.at] !== "]")) throw new SyntaxError("a comma is missing");
    }
    return items;
  }

  string() {
    const quote = this.text[this.at];
    const found = quote === '"' ? /"((?:[^"\\]|\\[^])*)"/y : /'((?:[^'\\]|\\[^])*)'/y;
    found.lastIndex = this.at;
    const match = found.exec(this.text);
    if (match === null) throw new SyntaxError("a quote is missing");
    this.at += match[0].length;
    const inner = match[1].replace(/\\'/g, "'").replace(/(\\[^])|"|\n|\t/g, (all, escape) => escape ?? JSON.stringify(all).slice(1, -1));
    return JSON.parse(`"${inner}"`);
  }

  word() {
    const found = /[\w$.+-]+/y;
    found.lastIndex = this.at;
    const word = found.exec(this.text)?.[0] ?? "";
    if (!word) throw new SyntaxError(`not readable at ${this.at}`);
    this.at += word.length;
    return word;
  }
}

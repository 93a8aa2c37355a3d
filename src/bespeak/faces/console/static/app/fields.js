// A form for a JSON Schema: a field for each member, in as many levels as the value has.
import { html, useEffect, useState } from "./html.js";
import { readJson } from "./lib/forgiving.js";
import { blank, isObject, shapeOf, variantOf } from "./lib/schema.js";

/** The members of an object, without a frame. */
export function Members({ schema, root, value, onChange, at = "f" }) {
  const shape = shapeOf(schema, root);
  if (shape.kind === "choice") return html`<${Choice} shape=${shape} root=${root} value=${value} onChange=${onChange} id=${at} label="Kind" />`;
  if (shape.kind !== "object") return html`<${JsonField} id=${at} label="input" value=${value} onChange=${onChange} />`;
  const own = isObject(value) ? value : {};
  const set = (name) => (next) => {
    const { [name]: before, ...rest } = own;
    onChange(next === undefined ? rest : name in own ? { ...own, [name]: next } : { ...own, [name]: next });
  };
  const others = Object.keys(own).filter((name) => !shape.properties.some((one) => one.name === name));
  return html`<div class="members">
    ${shape.properties.map((one) => html`<${Field} key=${one.name} name=${one.name} schema=${one.schema} root=${root}
      value=${own[one.name]} required=${one.required} onChange=${set(one.name)} id=${`${at}-${one.name}`} />`)}
    ${others.length > 0 && html`<p class="soft">Only in the JSON: ${others.map((name) => html`<code>${name}</code> `)}</p>`}
  </div>`;
}

/** One member: its name, what it means, and a control that fits its type. */
export function Field({ name, schema, root, value, required, onChange, id }) {
  const shape = shapeOf(schema, root);
  const about = [shape.description, shape.hint].filter(Boolean).join(" · ");
  const common = { id, shape, root, value, onChange, required, about: about ? `${id}-about` : null, label: name };
  const nested = ["object", "array", "choice"].includes(shape.kind);
  const head = html`<span class="name">${name}</span>${required && html`<span class="soft need"> required</span>`}`;
  const note = about && html`<p class="soft about" id=${`${id}-about`}>${about}</p>`;
  const nothing = shape.nullable && html`<label class="nothing"><input type="checkbox" checked=${value === null}
    onChange=${(event) => onChange(event.currentTarget.checked ? null : undefined)} /> null<span class="unseen"> for ${name}</span></label>`;
  if (nested) {
    const present = value !== undefined && value !== null;
    return html`<fieldset class="nested" aria-describedby=${common.about}><legend>${head}</legend>${note}${nothing}
      ${present || required ? html`<${CONTROLS[shape.kind]} ...${common} />` : null}
      ${!present && !required && html`<button type="button" class="small" onClick=${() => onChange(blank(schema, root))}>Add ${name}</button>`}
      ${present && !required && html`<button type="button" class="small" onClick=${() => onChange(undefined)}>Leave ${name} out</button>`}
    </fieldset>`;
  }
  const Control = CONTROLS[shape.kind] ?? JsonField;
  return html`<div class="field"><div class="label"><label for=${id}>${head}</label>${nothing}</div>
    <${Control} ...${common} />${note}</div>`;
}

function Text({ id, shape, value, onChange, about, required }) {
  const given = value === undefined || value === null ? "" : String(value);
  const dated = shape.format === "date" && (given === "" || /^\d{4}-\d\d-\d\d$/.test(given));
  const type = shape.secret ? "password" : dated ? "date" : "text";
  const set = (event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value);
  if (shape.kind === "text") return html`<textarea id=${id} rows="4" aria-describedby=${about} value=${given} onInput=${set} />`;
  return html`<input id=${id} type=${type} autocomplete="off" spellcheck=${false} aria-describedby=${about} aria-required=${required ? "true" : null}
    placeholder=${type === "text" ? { "date-time": "2027-03-01T14:00:00Z", uuid: "00000000-0000-4000-8000-…", uri: "https://…", time: "14:00:00Z" }[shape.format] ?? "" : ""}
    value=${given} onInput=${set} />`;
}

/** A number keeps what is typed until it is a number, so that "1." can become "1.5". */
function Numeric({ id, value, onChange, about, required }) {
  const shown = value === undefined || value === null ? "" : String(value);
  const [typed, type] = useState(shown);
  const read = (text) => (text.trim() === "" ? undefined : Number.isFinite(Number(text)) ? Number(text) : text);
  useEffect(() => { if (read(typed) !== (value ?? undefined)) type(shown); }, [value]);
  const wrong = typeof value === "string" && value !== "";
  return html`<input id=${id} type="text" inputmode="decimal" autocomplete="off" aria-describedby=${about} aria-invalid=${wrong ? "true" : null}
    aria-required=${required ? "true" : null} value=${typed}
    onInput=${(event) => { type(event.currentTarget.value); onChange(read(event.currentTarget.value)); }} />`;
}

/** A few fixed values, one of which is that there is none. */
function Options({ id, shape, value, onChange, about }) {
  const options = shape.kind === "boolean" ? [true, false] : shape.options;
  const at = options.findIndex((one) => JSON.stringify(one) === JSON.stringify(value));
  const other = at < 0 && value !== undefined && value !== null;
  return html`<select id=${id} aria-describedby=${about} value=${other ? "other" : at < 0 ? "" : String(at)}
      onChange=${(event) => onChange(options[Number(event.currentTarget.value || NaN)])}>
    <option value="">left out</option>
    ${options.map((one, place) => html`<option key=${place} value=${String(place)}>${typeof one === "string" ? one : JSON.stringify(one)}</option>`)}
    ${other && html`<option value="other">${JSON.stringify(value).slice(0, 60)} (not in the list)</option>`}</select>`;
}

function Constant({ id, shape, value, onChange }) {
  return html`<label class="check"><input id=${id} type="checkbox" checked=${value !== undefined}
    onChange=${(event) => onChange(event.currentTarget.checked ? shape.value : undefined)} /> <code>${JSON.stringify(shape.value)}</code></label>`;
}

function Items({ shape, root, value, onChange, id, label }) {
  const items = Array.isArray(value) ? value : [];
  const put = (at) => (next) => onChange(items.map((one, place) => (place === at ? next ?? null : one)));
  return html`<div class="items">
    ${items.map((one, at) => html`<div class="item" key=${at}>
      <${Field} name=${`${label} ${at + 1}`} schema=${shape.items} root=${root} value=${one} required onChange=${put(at)} id=${`${id}-${at}`} />
      <button type="button" class="small" onClick=${() => onChange(items.filter((_, place) => place !== at))}>Remove<span class="unseen"> ${label} ${at + 1}</span></button>
    </div>`)}
    <button type="button" class="small" onClick=${() => onChange([...items, blank(shape.items, root) ?? null])}>Add to ${label}</button></div>`;
}

function Choice({ shape, root, value, onChange, id, label }) {
  const [at, setAt] = useState(() => variantOf(shape, value, root));
  const fits = value === undefined ? at : variantOf(shape, value, root);
  useEffect(() => { if (value !== undefined) setAt(fits); }, [fits]);
  const variant = shape.variants[at] ?? shape.variants[0];
  const inner = shapeOf(variant.schema, root);
  const change = (event) => {
    const next = Number(event.currentTarget.value);
    setAt(next);
    onChange(blank(shape.variants[next].schema, root));
  };
  return html`<div class="field"><label for=${`${id}-kind`}>Kind of ${label}</label>
      <select id=${`${id}-kind`} value=${String(at)} onChange=${change}>
        ${shape.variants.map((one, place) => html`<option key=${place} value=${String(place)}>${one.label}</option>`)}</select></div>
    ${inner.kind === "object" ? html`<${Members} key=${at} schema=${variant.schema} root=${root} value=${value} onChange=${onChange} at=${`${id}-v`} />`
      : html`<${Field} key=${at} name=${label} schema=${variant.schema} root=${root} value=${value} required onChange=${onChange} id=${`${id}-v`} />`}`;
}

const Nested = ({ shape, root, value, onChange, id }) =>
  html`<${Members} schema=${shape.schema} root=${root} value=${value} onChange=${onChange} at=${id} />`;

/** Any JSON value, where the schema does not say more. */
function JsonField({ id, value, onChange, about, label }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    const found = readJson(text);
    if (JSON.stringify("value" in found ? found.value : undefined) !== JSON.stringify(value)) setText(value === undefined ? "" : JSON.stringify(value));
  }, [value]);
  const set = (event) => {
    const typed = event.currentTarget.value, found = typed.trim() ? readJson(typed) : { value: undefined };
    setText(typed);
    setWrong("error" in found);
    if (!("error" in found)) onChange(found.value);
  };
  return html`<textarea id=${id} class="mono" rows="2" spellcheck=${false} placeholder="JSON" aria-label=${`${label} as JSON`} aria-describedby=${about}
    aria-invalid=${wrong ? "true" : null} value=${text} onInput=${set} />`;
}

const CONTROLS = { string: Text, text: Text, number: Numeric, integer: Numeric, boolean: Options, enum: Options, const: Constant,
  array: Items, choice: Choice, object: Nested, json: JsonField };

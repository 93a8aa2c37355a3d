// What a form shows for a JSON Schema: one level at a time, so that a schema may refer to itself.

/** @typedef {{kind: string, title: string, description: string, nullable: boolean, schema: any, secret: boolean,
 *   properties?: {name: string, schema: any, required: boolean}[], open?: boolean, items?: any, options?: any[],
 *   variants?: {label: string, schema: any}[], format?: string, value?: any, hint: string}} Shape */

const LONG = 200; // characters from which a text gets several lines
const MOST_REFS = 20;

/** Describe how a value of a schema is entered. @param {any} schema @param {any} root @returns {Shape} */
export function shapeOf(schema, root) {
  const { schema: own, nullable } = withoutNull(resolve(schema, root), root);
  const shape = {
    schema: own, nullable, kind: "json", secret: own.writeOnly === true || own.format === "password",
    title: text(own.title), description: text(own.description), format: text(own.format), hint: hintOf(own),
  };
  if ("const" in own) return { ...shape, kind: "const", value: own.const };
  if (Array.isArray(own.enum)) return { ...shape, kind: "enum", options: own.enum.filter((one) => !(nullable && one === null)) };
  const choices = own.oneOf ?? own.anyOf;
  if (Array.isArray(choices) && choices.length) {
    if (choices.every((one) => one && typeof one === "object" && "const" in one)) {
      return { ...shape, kind: "enum", options: choices.map((one) => one.const) };
    }
    const base = isObject(own.properties) ? { properties: own.properties, required: own.required, type: "object" } : {};
    return { ...shape, kind: "choice", variants: choices.map((one, at) => {
      const variant = merge([base, resolve(one, root)], root);
      return { label: labelOf(variant, at), schema: variant };
    }) };
  }
  const type = typeOf(own);
  if (type === "object" && isObject(own.properties)) {
    const required = new Set(Array.isArray(own.required) ? own.required : []);
    const properties = Object.entries(own.properties).map(([name, one]) => ({ name, schema: one, required: required.has(name) }));
    properties.sort((a, b) => Number(b.required) - Number(a.required));
    return { ...shape, kind: "object", properties, open: own.additionalProperties !== false };
  }
  if (type === "array" && isObject(own.items)) return { ...shape, kind: "array", items: own.items };
  if (type === "string") return { ...shape, kind: (own.maxLength ?? 0) > LONG ? "text" : "string" };
  if (type === "integer" || type === "number" || type === "boolean" || type === "null") return { ...shape, kind: type };
  return shape;
}

/** Return a first value for what a person adds: with the required members, empty. @param {any} schema @param {any} root
 * @returns {any} */
export function blank(schema, root, depth = 0) {
  const shape = shapeOf(schema, root);
  if (isObject(schema) && "default" in schema) return schema.default;
  switch (shape.kind) {
    case "object":
      return Object.fromEntries(depth > 5 ? [] : (shape.properties ?? []).filter((one) => one.required)
        .map((one) => [one.name, blank(one.schema, root, depth + 1)]).filter(([, value]) => value !== undefined));
    case "array": return [];
    case "const": return shape.value;
    case "choice": return blank(shape.variants?.[0].schema, root, depth + 1);
    case "null": return null;
    default: return depth === 0 && (shape.kind === "string" || shape.kind === "text") ? "" : undefined;
  }
}

/** Return the variant of a choice that a value looks most like. @param {Shape} shape @param {any} value @param {any} root */
export function variantOf(shape, value, root) {
  let best = 0, most = -1;
  (shape.variants ?? []).forEach((variant, at) => {
    const likeness = liken(shapeOf(variant.schema, root), value, root);
    if (likeness > most) [best, most] = [at, likeness];
  });
  return best;
}

/** @param {Shape} shape @param {any} value @param {any} root @returns {number} */
function liken(shape, value, root) {
  if (shape.kind === "const") return shape.value === value ? 5 : 0;
  if (shape.kind === "object") {
    if (!isObject(value)) return 0;
    return (shape.properties ?? []).reduce((sum, one) => {
      if (!(one.name in value)) return sum - (one.required ? 2 : 0);
      const inner = shapeOf(one.schema, root);
      return sum + (inner.kind === "const" ? (inner.value === value[one.name] ? 10 : -10) : 1);
    }, 20);
  }
  if (shape.kind === "array") return Array.isArray(value) ? 5 : 0;
  if (shape.kind === "enum") return shape.options?.includes(value) ? 6 : 0;
  if (shape.kind === "integer" || shape.kind === "number") return typeof value === "number" ? 5 : 0;
  if (shape.kind === "text") return typeof value === "string" ? 5 : 0;
  return typeof value === shape.kind ? 5 : 0;
}

/** List the paths of secret members, which are never stored. @param {any} schema @param {any} root @returns {string[]} */
export function secretNames(schema, root, depth = 0) {
  const shape = shapeOf(schema, root);
  if (depth > 5 || shape.kind !== "object") return [];
  return (shape.properties ?? []).flatMap((one) =>
    shapeOf(one.schema, root).secret ? [one.name] : secretNames(one.schema, root, depth + 1));
}

/** Follow references inside the document and join `allOf`. @param {any} schema @param {any} root */
function resolve(schema, root) {
  let found = schema;
  for (let step = 0; isObject(found) && typeof found.$ref === "string" && step < MOST_REFS; step += 1) {
    const { $ref, ...beside } = found;
    const target = $ref === "#" ? root : $ref.startsWith("#/") && $ref.slice(2).split("/")
      .reduce((/** @type {any} */ at, part) => at?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")], root);
    if (!isObject(target)) return {};
    found = { ...target, ...beside };
  }
  if (!isObject(found)) return {};
  if (!Array.isArray(found.allOf)) return found;
  const { allOf, ...rest } = found;
  return merge([rest, ...allOf.slice(0, MOST_REFS)], root);
}

/** @param {any[]} schemas @param {any} root */
function merge(schemas, root) {
  return schemas.map((one) => (one?.$ref ? resolve(one, root) : one)).filter(isObject).reduce((joined, one) => ({
    ...joined, ...one,
    ...(joined.properties || one.properties ? { properties: { ...joined.properties, ...one.properties } } : {}),
    ...(joined.required || one.required ? { required: [...(joined.required ?? []), ...(one.required ?? [])] } : {}),
  }), {});
}

/** Take null out of a schema. @param {any} schema @param {any} root */
function withoutNull(schema, root) {
  if (Array.isArray(schema.type) && schema.type.includes("null")) {
    const left = schema.type.filter((/** @type {string} */ one) => one !== "null");
    return { schema: { ...schema, type: left.length === 1 ? left[0] : left }, nullable: true };
  }
  for (const name of ["anyOf", "oneOf"]) {
    const all = schema[name];
    if (!Array.isArray(all) || !all.some((one) => one?.type === "null")) continue;
    const left = all.filter((one) => one?.type !== "null");
    const { [name]: _, ...rest } = schema;
    return { schema: left.length === 1 ? { ...resolve(left[0], root), ...rest } : { ...rest, [name]: left }, nullable: true };
  }
  return { schema, nullable: false };
}

/** @param {any} schema */
function typeOf(schema) {
  if (typeof schema.type === "string") return schema.type;
  return isObject(schema.properties) ? "object" : isObject(schema.items) ? "array" : "";
}

/** @param {any} variant @param {number} at */
function labelOf(variant, at) {
  const fixed = Object.values(isObject(variant.properties) ? variant.properties : {}).find((one) => isObject(one) && "const" in one);
  return text(variant.title) || (fixed ? String(fixed.const) : "") || ("const" in variant ? String(variant.const) : "") ||
    (typeOf(variant) === "object" && Array.isArray(variant.required) && variant.required.join(", ")) || typeOf(variant) || `choice ${at + 1}`;
}

/** @param {any} schema */
function hintOf(schema) {
  const parts = [];
  if (typeof schema.format === "string" && schema.format !== "date") parts.push(schema.format);
  const least = schema.minimum ?? schema.exclusiveMinimum, most = schema.maximum ?? schema.exclusiveMaximum;
  if (least !== undefined && most !== undefined) parts.push(`${least} to ${most}`);
  else if (least !== undefined || most !== undefined) parts.push(least !== undefined ? `from ${least}` : `up to ${most}`);
  if (typeof schema.maxLength === "number") parts.push(`at most ${schema.maxLength} characters`);
  if (typeof schema.pattern === "string") parts.push(`like ${schema.pattern}`);
  if (schema.default !== undefined) parts.push(`default ${JSON.stringify(schema.default)}`);
  return parts.join(" · ").slice(0, 160);
}

/** @param {any} value */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {any} value */
const text = (value) => (typeof value === "string" ? value : "");

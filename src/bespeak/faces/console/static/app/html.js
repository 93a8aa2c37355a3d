// The one way in which components write elements: templates of htm, made by Preact. Texts are never read as HTML.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
export { render } from "preact";
export { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

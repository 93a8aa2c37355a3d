// What is shown to a visitor who has not shown yet that they may use the console.
import { html, useState } from "./html.js";
import { keepToken, useBearer } from "./api.js";
import { readToken } from "./lib/routes.js";
import { Problem } from "./parts.js";

export function NeedsToken({ onToken }) {
  const [wrong, setWrong] = useState(false);
  const submit = (event) => {
    event.preventDefault();
    const token = readToken(String(new FormData(event.currentTarget).get("link")));
    setWrong(token === null);
    if (token === null) return;
    keepToken(token);
    onToken();
  };
  return html`<section class="page narrow access"><h1>Open the link of this console</h1>
    <p>The console needs the token of this start. The command that serves it has printed a link that carries it:</p>
    <pre>OPEN  ${location.origin}${location.pathname}#token=…</pre>
    <p class="soft">The token is valid until the command ends. It stays in this tab: a new tab needs the link again.</p>
    <form onSubmit=${submit}><div class="field"><label for="link">Link or token</label>
      <input id="link" name="link" class="mono" autocomplete="off" spellcheck=${false} aria-invalid=${wrong ? "true" : null} /></div>
      <p role="status" class="wrong">${wrong ? "There is no token in this text. Copy the whole line." : ""}</p>
      <button type="submit" class="primary">Open</button></form></section>`;
}

export function NeedsCredential({ error, onBearer }) {
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    useBearer(String(given.get("bearer")).trim(), given.has("stays"));
    onBearer();
  };
  return html`<section class="page narrow access"><h1>Sign in to the console</h1>
    <p>It takes a credential of the service whose scopes contain <code>console:read</code> to look, and <code>console:act</code> to act.</p>
    ${error && html`<${Problem} error=${error} />`}
    <form onSubmit=${submit}><div class="field"><label for="bearer">Credential (bearer)</label>
      <input id="bearer" name="bearer" type="password" autocomplete="off" required /></div>
      <label class="check"><input type="checkbox" name="stays" /> Keep it until this tab is closed, also when the page is loaded again</label>
      <p><button type="submit" class="primary">Sign in</button></p></form></section>`;
}

// Starts `bespeak lsp` and connects the editor with it; everything else is said by the server.
"use strict";

const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

/** The documents the server is shown. It stays silent about TOML and JSON files that are not contracts. */
const DOCUMENTS = [
  { language: "agis" },
  { scheme: "file", pattern: "**/*.agis" },
  { scheme: "file", pattern: "**/*.toml" },
  { scheme: "file", pattern: "**/*.json" },
  { scheme: "file", pattern: "**/.well-known/ai" },
];

/** Files that decide what is found in others. */
const SETTINGS = "**/{bespeak.toml,agtp-server.toml,pyproject.toml,agtp-recipes.toml,bespeak-baseline.json}";

let client;

function program() {
  const path = vscode.workspace.getConfiguration("bespeak").get("path") || "bespeak";
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return path.replaceAll("${workspaceFolder}", folder);
}

async function start() {
  const command = program();
  const server = { command, args: ["lsp"], transport: TransportKind.stdio };
  client = new LanguageClient("bespeak", "bespeak", server, {
    documentSelector: DOCUMENTS,
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher(SETTINGS) },
  });
  try {
    await client.start();
  } catch (error) {
    const install = "Install it with: pip install 'bespeak[lsp]', or set bespeak.path.";
    vscode.window.showErrorMessage(`${command} lsp does not start: ${error.message ?? error}. ${install}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  // A client that never started refuses to be stopped, and there is nothing to stop.
  await running?.stop().catch(() => undefined);
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("bespeak.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("bespeak.path")) {
        restart();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };

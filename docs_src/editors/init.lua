vim.filetype.add({ extension = { agis = "agis" } })
vim.lsp.config("bespeak", {
  cmd = { "bespeak", "lsp" },
  filetypes = { "agis", "toml", "json" },
  root_markers = { "bespeak.toml", "pyproject.toml", ".git" },
})
vim.lsp.enable("bespeak")

---Sandboxed terminals for toggleterm.
---
---    require('toggleterm').setup({
---      shell = require('sandbox_sidecar.integrations.toggleterm').shell,
---    })
local config = require('sandbox_sidecar.config')
local wrap = require('sandbox_sidecar.wrap')

local M = {}

---@return string # The command line of a sandboxed shell.
function M.shell()
  return wrap.line(config.get().shell or { vim.env.SHELL or '/bin/sh' }, { kind = 'terminal' })
end

---For a terminal of one command: Terminal:new({ cmd = command({ 'lazygit' }) }).
---@param argv string[]
---@return string
function M.command(argv)
  return wrap.line(argv, { kind = 'terminal' })
end

return M

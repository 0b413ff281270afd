---Sandboxed terminals for toggleterm.
---
---    require('toggleterm').setup({
---      shell = require('sandbox_sidecar.integrations.toggleterm').shell,
---    })
local config = require('sandbox_sidecar.config')
local display = require('sandbox_sidecar.display')
local wrap = require('sandbox_sidecar.wrap')

local M = {}

---What toggleterm shows for a line that it runs. It would show the whole line,
---which begins with the path of the sidecar.
local titles = {} ---@type table<string, string>

---Names a terminal, unless the user has.
---@param buf integer
local function name(buf)
  local terminals = package.loaded['toggleterm.terminal']
  for _, terminal in pairs(terminals and terminals.get_all(true) or {}) do
    -- toggleterm adds a comment to the line.
    local line = terminal.bufnr == buf and (terminal.name or ''):match('^(.*);#toggleterm#%d+$')
    terminal.display_name = terminal.display_name or line and titles[line] or nil
  end
end

---@param argv string[]
---@return string
local function line(argv)
  local wrapped = wrap.line(argv, { kind = 'terminal' })
  titles[wrapped] = display.text(table.concat(argv, ' '))
  vim.api.nvim_create_autocmd('TermOpen', {
    group = vim.api.nvim_create_augroup('sandbox_sidecar.toggleterm', {}),
    pattern = '*#toggleterm#*',
    callback = function(event)
      -- toggleterm notes the line when the terminal is open.
      vim.schedule(function()
        name(event.buf)
      end)
    end,
  })
  return wrapped
end

---@return string # The command line of a sandboxed shell.
function M.shell()
  return line(config.get().shell or { vim.env.SHELL or '/bin/sh' })
end

---For a terminal of one command: Terminal:new({ cmd = command({ 'lazygit' }) }).
---@param argv string[]
---@return string
function M.command(argv)
  return line(argv)
end

return M

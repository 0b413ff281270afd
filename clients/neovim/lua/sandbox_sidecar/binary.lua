---Finds the program.
local config = require('sandbox_sidecar.config')

local M = {}

local NAME = 'sandbox-sidecar'

---@return string[] # Directories that may contain the program, besides $PATH, best first.
local function own_directories()
  local here = vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)) or ''
  local plugin = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(here)))
  -- In a checkout of the repository the plugin is clients/neovim.
  return {
    vim.fs.joinpath(plugin, 'bin'),
    vim.fs.normalize(vim.fs.joinpath(plugin, '..', '..', 'bin')),
  }
end

---@return string? path
---@return string? err What was searched.
function M.find()
  local configured = config.get().binary
  if configured then
    local path = vim.fn.exepath(vim.fs.normalize(configured))
    if path == '' then
      return nil, ('find sidecar: %s (option binary): not an executable file'):format(configured)
    end
    return path
  end
  for _, dir in ipairs(own_directories()) do
    local path = vim.fs.joinpath(dir, NAME)
    if vim.fn.executable(path) == 1 then
      return path
    end
  end
  local path = vim.fn.exepath(NAME)
  if path ~= '' then
    return path
  end
  return nil,
    ('find sidecar: no %s in %s or in $PATH (hint: "make build" in the checkout, or set the option binary)'):format(
      NAME,
      table.concat(own_directories(), ', ')
    )
end

return M

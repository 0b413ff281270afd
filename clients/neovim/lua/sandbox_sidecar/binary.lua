---Finds the program.
local config = require('sandbox_sidecar.config')
local display = require('sandbox_sidecar.display')

local M = {}

local NAME = 'sandbox-sidecar'

---@return string[] # Directories that may contain the program, besides $PATH, best first.
function M.directories()
  local here = vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)) or ''
  local plugin = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(here)))
  -- In a checkout of the repository the plugin is clients/neovim.
  return {
    vim.fs.joinpath(plugin, 'bin'),
    vim.fs.normalize(vim.fs.joinpath(plugin, '..', '..', 'bin')),
  }
end

---@return string? path
---@return string? err
function M.find()
  local configured = config.get().binary
  if configured then
    local path = vim.fn.exepath(vim.fs.normalize(configured))
    if path == '' then
      return nil,
        ('the sidecar cannot start: %s is not a program. Correct the option "binary".'):format(
          display.path(configured)
        )
    end
    return path
  end
  for _, dir in ipairs(M.directories()) do
    local path = vim.fs.joinpath(dir, NAME)
    if vim.fn.executable(path) == 1 then
      return path
    end
  end
  local path = vim.fn.exepath(NAME)
  if path ~= '' then
    return path
  end
  return nil, 'the sidecar cannot start: sandbox-sidecar was not found. Set the option "binary".'
end

return M

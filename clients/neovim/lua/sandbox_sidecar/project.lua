---Which project a directory belongs to.
local config = require('sandbox_sidecar.config')

local M = {}

---@param path string
---@return string # Absolute, without "~" or symlinks in what exists of it.
function M.absolute(path)
  local full = vim.fn.fnamemodify(vim.fs.normalize(path), ':p')
  full = #full > 1 and full:gsub('/$', '') or full
  return vim.uv.fs_realpath(full) or full
end

---@param dir string Absolute.
---@return string
function M.root(dir)
  dir = M.absolute(dir)
  local home = vim.uv.os_homedir()
  home = home and M.absolute(home)
  local function open(candidate)
    -- Dotfiles are often kept in a repository that is the home directory itself: that would make all of it writable.
    return not home or candidate == home or vim.startswith(home .. '/', candidate .. '/')
  end
  local at = dir
  while not open(at) and at ~= '/' do
    for _, marker in ipairs(config.get().root_markers) do
      if vim.uv.fs_stat(vim.fs.joinpath(at, marker)) then
        return at
      end
    end
    at = vim.fs.dirname(at)
  end
  return dir
end

---@return string # The project of the current window's directory.
function M.current()
  return M.root(vim.fn.getcwd())
end

return M

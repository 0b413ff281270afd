---Finds the project of a directory.
local config = require('sandbox_sidecar.config')
local display = require('sandbox_sidecar.display')

local M = {}

---@param path string
---@return string # Absolute; without "~" or, as far as the path exists, symlinks.
function M.absolute(path)
  -- A path that exists is taken literally, with "$" and all.
  local real = vim.startswith(path, '/') and vim.uv.fs_realpath(path)
  if real then
    return real
  end
  local full = vim.fn.fnamemodify(vim.fs.normalize(path), ':p')
  full = #full > 1 and full:gsub('/$', '') or full
  return vim.uv.fs_realpath(full) or full
end

---@param dir string
---@return string? # The nearest directory above with a project marker; nil if there is none.
local function find_marked(dir)
  local home = vim.uv.os_homedir()
  home = home and M.absolute(home)
  local function is_home_or_above(candidate)
    -- Many users keep their dotfiles in a repository. A project there would
    -- make the whole home directory writable.
    return not home or candidate == home or vim.startswith(home .. '/', candidate .. '/')
  end
  local at = dir
  while not is_home_or_above(at) and at ~= '/' do
    for _, marker in ipairs(config.get().root_markers) do
      if vim.uv.fs_stat(vim.fs.joinpath(at, marker)) then
        return at
      end
    end
    at = vim.fs.dirname(at)
  end
end

---@param dir string Absolute.
---@return string
function M.root(dir)
  dir = M.absolute(dir)
  return find_marked(dir) or dir
end

---@return string # The project of the current window's directory.
function M.current()
  return M.root(vim.fn.getcwd())
end

---@param root string
---@param dir string Without symlinks.
---@return boolean
local function contains(root, dir)
  return vim.startswith(dir .. '/', root == '/' and '/' or root .. '/')
end

---Returns the project that a session may write, if its directory comes from an
---untrusted file. It must be a project that the user works in: the current one,
---or that of a file in a window. If none contains the directory, it is the
---current project.
---@param dir string
---@return string
function M.working(dir)
  local current = M.current()
  dir = M.absolute(dir)
  if contains(current, dir) then
    return current
  end
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local buf = vim.api.nvim_win_get_buf(win)
    local name = vim.api.nvim_buf_get_name(buf)
    local root = vim.bo[buf].buftype == ''
      and vim.startswith(name, '/')
      and find_marked(vim.fs.dirname(M.absolute(name)))
    if root and contains(root, dir) then
      return root
    end
  end
  return current
end

---Resolves a directory that an agent named. It must be in the project as the
---kernel sees it, so "..", links and similar names lead nowhere else. Paths
---outside and missing paths get the same answer, which reveals nothing.
---@param root string The project, as root() returns it.
---@param dir any A path, absolute or below the project; nil is the project.
---@return string? dir Without symlinks.
---@return string? err Escaped.
function M.inside(root, dir)
  if dir == nil or dir == vim.NIL then
    return root
  elseif type(dir) ~= 'string' then
    return nil, ('expected a path, found a %s'):format(type(dir))
  end
  local path = vim.startswith(dir, '/') and dir or root .. '/' .. dir
  -- The system calls read only up to a NUL.
  local real = not dir:find('%z') and vim.uv.fs_realpath(path) or nil
  local stat = real and vim.uv.fs_stat(real)
  if not stat or stat.type ~= 'directory' or not contains(root, real) then
    return nil,
      ('%s is not a directory in the project %s'):format(display.quote(dir), display.quote(root))
  end
  return real
end

return M

---Command lines that run under "sandbox-sidecar exec", for code that starts
---processes itself: |:terminal|, jobstart(), other plugins.
local binary = require('sandbox_sidecar.binary')
local check = require('sandbox_sidecar.options').check
local config = require('sandbox_sidecar.config')
local display = require('sandbox_sidecar.display')
local project = require('sandbox_sidecar.project')

local M = {}

---@class sandbox_sidecar.WrapOptions
---@field kind? sandbox_sidecar.Kind Which settings apply. Default: "tool", which does not start without a sandbox.
---@field project_dir? string What the command may write. Default: see the option `root_markers`.

local WRAP_OPTIONS = { kind = { 'string' }, project_dir = { 'string' } }

---Command lines that need no wrapping: those of argv(), and the sidecar's own.
---Tables are compared by identity, which no untrusted text can forge.
local marked = setmetatable({}, { __mode = 'k' })

---Marks a command line as needing no wrapping.
---@param argv string[]
---@return string[] # The same table.
function M.mark(argv)
  marked[argv] = true
  return argv
end

---@param argv any
---@return boolean # Whether it needs no wrapping.
function M.is_marked(argv)
  return marked[argv] == true
end

---Returns the wrapped command line. Raises an error if there is no sidecar, so
---that nothing runs unsandboxed by mistake.
---@param argv string[]
---@param options? sandbox_sidecar.WrapOptions
---@return string[]
function M.argv(argv, options)
  if type(argv) ~= 'table' or #argv == 0 then
    error('wrap: expected a program with its arguments as a list', 2)
  end
  options = options or {}
  check('wrap', options, WRAP_OPTIONS)
  local path, err = binary.find()
  if not path then
    error(err, 2)
  end
  local wrapped = {
    path,
    'exec',
    '--kind',
    options.kind or 'tool',
    '--project',
    options.project_dir and project.absolute(options.project_dir) or project.current(),
  }
  local settings = config.get().settings_path
  if settings then
    vim.list_extend(wrapped, { '--settings', settings })
  end
  wrapped[#wrapped + 1] = '--'
  return M.mark(vim.list_extend(wrapped, argv))
end

---@param word string
---@return string # Quoted, unless it means itself in every shell.
local function quote(word)
  return word:find('^[%w_./-][%w_./:+-]*$') and word or vim.fn.shellescape(word)
end

---The same as one line, quoted for 'shell', for options that take no list. The
---line is what plugins show, so only the words that need it are quoted.
---@param argv string[]
---@param options? sandbox_sidecar.WrapOptions
---@return string
function M.line(argv, options)
  return table.concat(vim.tbl_map(quote, M.argv(argv, options)), ' ')
end

---Opens a terminal of Neovim's own in the current window, with a sandboxed
---command.
---@param argv string[]
---@return integer # The job's id.
function M.terminal(argv)
  local wrapped = M.argv(argv, { kind = 'terminal' })
  vim.cmd.enew()
  local job
  if vim.fn.has('nvim-0.11') == 1 then
    job = vim.fn.jobstart(wrapped, { term = true })
  else
    job = vim.fn.termopen(wrapped)
  end
  vim.api.nvim_buf_set_name(
    0,
    ('sidecar://exec//%d:%s'):format(vim.fn.jobpid(job), display.text(table.concat(argv, ' ')))
  )
  return job
end

return M

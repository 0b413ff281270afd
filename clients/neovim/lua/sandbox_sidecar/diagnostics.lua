---Shows problems in settings files as diagnostics of their buffers, and marks
---terminals that use old settings.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')
local terminal = require('sandbox_sidecar.terminal')
local trust = require('sandbox_sidecar.trust')

local M = {}

local namespace = vim.api.nvim_create_namespace('sandbox_sidecar')

local files = {} ---@type table<string, sandbox_sidecar.Diagnostic[]> By real path.

local SEVERITY = {
  error = vim.diagnostic.severity.ERROR,
  warning = vim.diagnostic.severity.WARN,
  info = vim.diagnostic.severity.INFO,
}

---@param path string
---@return string
local function real(path)
  return vim.uv.fs_realpath(path) or path
end

---@param buf integer
---@param list sandbox_sidecar.Diagnostic[]
local function show(buf, list)
  vim.diagnostic.set(
    namespace,
    buf,
    vim.tbl_map(function(d)
      return {
        lnum = math.max(d.line, 1) - 1,
        col = math.max(d.column, 1) - 1,
        severity = SEVERITY[d.severity],
        message = display.line(d.message),
        code = d.key and display.text(d.key),
        source = 'sandbox-sidecar',
      }
    end, list)
  )
end

---@param buf integer
local function show_known(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local list = name ~= '' and files[real(name)]
  if list then
    show(buf, list)
  end
end

---@return table<string, sandbox_sidecar.Diagnostic[]> # All known problems, by real path.
function M.all()
  return files
end

sidecar.notifications[protocol.methods.settings_diagnostics] = function(params)
  local path = real(params.file)
  files[path] = #params.diagnostics > 0 and params.diagnostics or nil
  local shown = false
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and real(vim.api.nvim_buf_get_name(buf)) == path then
      show(buf, params.diagnostics)
      shown = true
    end
  end
  for _, d in ipairs(params.diagnostics) do
    -- If the file is open, its buffer shows the error. Otherwise a message
    -- does.
    if d.severity == 'error' and not shown then
      notify.show(
        ('%s:%d:%d: %s'):format(display.path(params.file), d.line, d.column, d.message),
        vim.log.levels.ERROR
      )
      break
    end
  end
end

sidecar.notifications[protocol.methods.settings_changed] = function(params)
  for _, project in ipairs(params.projects) do
    trust.notify_once(project)
  end
  local stale = {}
  for _, session in ipairs(params.staleSessions) do
    stale[session.sessionId] = true
  end
  local count, ours = require('sandbox_sidecar.shells').set_stale(stale), 0
  for _, t in ipairs(terminal.list()) do
    ours = ours + (t:set_stale(stale[t.id] == true) and 1 or 0)
  end
  count = count + ours
  local expected = notify.is_expected_change()
  if count > 0 and not expected then
    notify.warn(
      ('%d terminal%s old settings.%s'):format(
        count,
        count == 1 and ' still uses' or 's still use',
        ours > 0 and ' See ":Sidecar reopen".' or ''
      )
    )
  end
end

-- A new sidecar reports everything again.
table.insert(sidecar.on_change, function()
  if not sidecar.initialize_result() then
    files = {}
    vim.diagnostic.reset(namespace)
  end
end)

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufFilePost', 'BufWritePost' }, {
  group = vim.api.nvim_create_augroup('sandbox_sidecar.diagnostics', { clear = true }),
  pattern = '*.json',
  callback = function(event)
    show_known(event.buf)
  end,
})

return M

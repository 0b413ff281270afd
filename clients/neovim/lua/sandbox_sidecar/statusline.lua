---The statusline's text for a terminal.
local M = {}

---@type table<string, { text: string, group: string, link: string }>
local STATUS = {
  full = { text = 'sandboxed', group = 'SandboxSidecarFull', link = 'DiagnosticOk' },
  degraded = {
    text = 'sandboxed in part',
    group = 'SandboxSidecarDegraded',
    link = 'DiagnosticWarn',
  },
  none = { text = 'NOT sandboxed', group = 'SandboxSidecarNone', link = 'DiagnosticError' },
  off = { text = 'not sandboxed', group = 'SandboxSidecarOff', link = 'Comment' },
}

local function define_highlights()
  for _, status in pairs(STATUS) do
    vim.api.nvim_set_hl(0, status.group, { link = status.link, default = true })
  end
end

define_highlights()
vim.api.nvim_create_autocmd('ColorScheme', {
  group = vim.api.nvim_create_augroup('sandbox_sidecar.statusline', { clear = true }),
  callback = define_highlights,
})

---@param buf? integer
---@return string
function M.text(buf)
  local state = vim.b[buf or 0].sandbox_sidecar
  if not state then
    return ''
  end
  local parts = {}
  local status = STATUS[state.sandbox]
  if status then
    parts[1] = ('%%#%s#%s%%*'):format(status.group, status.text)
  end
  if state.failed then
    parts[#parts + 1] = 'not running'
  elseif state.signal then
    -- Neovim evaluates "%" in the result.
    parts[#parts + 1] = 'ended by ' .. tostring(state.signal):gsub('%%', '%%%%')
  elseif state.exit_code then
    parts[#parts + 1] = ('exited %d'):format(state.exit_code)
  elseif not state.running then
    parts[#parts + 1] = 'starting'
  elseif state.stale then
    parts[#parts + 1] = 'old settings'
  end
  return table.concat(parts, ' ')
end

return M

---The statusline's text for a terminal.
local M = {}

---@type table<string, { text: string, group: string, link: string }>
local STATUS = {
  full = { text = 'sandbox', group = 'SandboxSidecarFull', link = 'DiagnosticOk' },
  degraded = { text = 'partly', group = 'SandboxSidecarDegraded', link = 'DiagnosticWarn' },
  none = { text = 'off', group = 'SandboxSidecarNone', link = 'DiagnosticError' },
  off = { text = 'off', group = 'SandboxSidecarOff', link = 'Comment' },
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
  local status = state and state.running and STATUS[state.sandbox]
  return status and ('%%#%s#%s%%*'):format(status.group, status.text) or ''
end

return M

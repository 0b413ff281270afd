---The size of a terminal buffer.
---
---Neovim has no event for the size of an emulator without a process. It uses
---the largest window that shows the buffer, without the columns for line
---numbers and signs. This module computes the same after every event that can
---change it. Toggling options such as 'number' fires no WinResized.
local M = {}

local EVENTS = { 'WinResized', 'VimResized', 'BufWinEnter', 'WinEnter', 'TermEnter' }
local OPTIONS = {
  'number',
  'relativenumber',
  'numberwidth',
  'signcolumn',
  'foldcolumn',
  'statuscolumn',
  'winbar',
  'laststatus',
  'cmdheight',
  'showtabline',
}

---@param buf integer
---@return integer? cols nil: no window shows the buffer.
---@return integer? rows
function M.of(buf)
  local cols, rows = 0, 0
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    cols = math.max(cols, info.width - info.textoff)
    rows = math.max(rows, info.height)
  end
  if cols > 0 and rows > 0 then
    return cols, rows
  end
end

---Calls back with the new size after each change, until the buffer is gone.
---@param buf integer
---@param callback fun(cols: integer, rows: integer)
function M.watch(buf, callback)
  local last_cols, last_rows = M.of(buf)
  local queued = false
  local group = vim.api.nvim_create_augroup('sandbox_sidecar.size.' .. buf, { clear = true })
  local function check()
    queued = false
    if not vim.api.nvim_buf_is_valid(buf) then
      return
    end
    local cols, rows = M.of(buf)
    if cols and rows and (cols ~= last_cols or rows ~= last_rows) then
      last_cols, last_rows = cols, rows
      callback(cols, rows)
    end
  end
  local function soon()
    -- Dragging a separator fires many events, and the layout is final only
    -- after the event.
    if not queued then
      queued = true
      vim.schedule(check)
    end
  end
  vim.api.nvim_create_autocmd(EVENTS, { group = group, callback = soon })
  vim.api.nvim_create_autocmd('OptionSet', { group = group, pattern = OPTIONS, callback = soon })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = buf,
    callback = function()
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
end

return M

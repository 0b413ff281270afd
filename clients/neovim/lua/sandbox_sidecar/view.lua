---Windows for untrusted text, which shows as it is.
local M = {}

---Opens a file and ignores its modelines, because a modeline can fold lines or
---hide them.
---@param command 'edit'|'split'
---@param path string
---@param mods? vim.api.keyset.cmd.mods
function M.file(command, path, mods)
  local modeline = vim.go.modeline
  vim.go.modeline = false
  local ok, err = pcall(vim.cmd[command], {
    path,
    mods = mods,
    magic = { file = false, bar = false },
  })
  vim.go.modeline = modeline
  if not ok then
    error(err, 0)
  end
end

---Shows lines in a new window with its own buffer.
---@param name string
---@param lines string[] Escaped.
---@param mods vim.api.keyset.cmd.mods
---@return integer # The window.
function M.lines(name, lines, mods)
  vim.cmd.new({ mods = mods })
  local win, buf = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].swapfile = false
  vim.bo[buf].modifiable = false
  pcall(vim.api.nvim_buf_set_name, buf, 'sidecar://' .. name)
  vim.bo[buf].filetype = 'sidecar-output'
  return win
end

---Asks the user by |vim.ui.select()|. Ctrl-C raises an error there, which
---counts as no choice.
---@param items any[]
---@param options table
---@param decided fun(choice?: any) Called once.
function M.choose(items, options, decided)
  local answered = false
  local function answer(choice)
    if not answered then
      answered = true
      decided(choice)
    end
  end
  local ok, err = pcall(vim.ui.select, items, options, answer)
  if not ok and answered then
    error(err, 0)
  elseif not ok then
    answer(nil)
  end
end

return M

if vim.g.loaded_sandbox_sidecar then
  return
end
vim.g.loaded_sandbox_sidecar = true

-- Everything below this line may only use what 0.7 has; everything that it
-- requires, what 0.10 has.
if vim.fn.has('nvim-0.10') == 0 then
  local told = false
  local function tell()
    told = true
    vim.notify('sandbox_sidecar: needs Neovim 0.10 or newer', vim.log.levels.WARN)
  end
  vim.api.nvim_create_user_command('Sidecar', tell, { nargs = '*', bang = true })
  vim.schedule(function()
    if not told then
      tell()
    end
  end)
  return
end

vim.api.nvim_create_user_command('Sidecar', function(args)
  require('sandbox_sidecar.command').run(args)
end, {
  nargs = '*',
  bang = true,
  desc = 'Sandboxed terminals',
  complete = function(lead, line, position)
    return require('sandbox_sidecar.command').complete(lead, line, position)
  end,
})

vim.keymap.set('n', '<Plug>(sandbox-sidecar-terminal)', '<Cmd>Sidecar terminal<CR>', {
  desc = 'Open a sandboxed terminal',
})

if vim.g.loaded_sandbox_sidecar then
  return
end
vim.g.loaded_sandbox_sidecar = true

-- Code below this line uses only what Neovim 0.7 has. The modules that it
-- requires use what 0.10 has.
if vim.fn.has('nvim-0.10') == 0 then
  local notified = false
  local function notify()
    notified = true
    vim.notify('sandbox_sidecar: needs Neovim 0.10 or newer', vim.log.levels.WARN)
  end
  vim.api.nvim_create_user_command('Sidecar', notify, { nargs = '*', bang = true })
  vim.schedule(function()
    if not notified then
      notify()
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

-- Buffers of a saved session.
vim.api.nvim_create_autocmd('BufReadCmd', {
  group = vim.api.nvim_create_augroup('sandbox_sidecar.restore', { clear = true }),
  pattern = 'sidecar://*//*',
  callback = function(event)
    require('sandbox_sidecar.terminal').restore(event.buf)
  end,
})

vim.keymap.set('n', '<Plug>(sandbox-sidecar-terminal)', '<Cmd>Sidecar terminal<CR>', {
  desc = 'Open a sandboxed terminal',
})

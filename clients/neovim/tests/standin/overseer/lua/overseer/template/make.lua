local overseer = require('overseer')

local M = {}

function M.generator(callback)
  if vim.fn.filereadable('Makefile') == 0 then
    return callback({})
  end
  overseer.builtin.system(
    { 'make', '-rRpq' },
    { cwd = vim.fn.getcwd(), text = true },
    vim.schedule_wrap(function(out)
      local made = {}
      for target in out.stdout:gmatch('\n(%w+):') do
        table.insert(made, {
          name = 'make ' .. target,
          builder = function()
            return { cmd = { 'make', target } }
          end,
        })
      end
      callback(made)
    end)
  )
end

return M

local overseer = require('overseer')

local Strategy = {}

function Strategy.new(opts)
  return setmetatable({ opts = opts or {} }, { __index = Strategy })
end

function Strategy:start(task)
  local opts =
    vim.tbl_extend('force', self.opts.wrap_opts or {}, { cwd = task.cwd, env = task.env })
  self.handle = overseer.builtin.system(task.cmd, opts, function(out)
    if self.opts.wrap_exit then
      self.opts.wrap_exit(out)
    end
    vim.schedule(function()
      task:on_exit(out.code)
    end)
  end)
end

function Strategy.get_bufnr() end

function Strategy:stop()
  self.handle:kill('SIGTERM')
end

function Strategy.reset() end

function Strategy.dispose() end

return Strategy

local overseer = require('overseer')

local Strategy = {}

function Strategy.new(opts)
  return setmetatable({ opts = opts or {} }, { __index = Strategy })
end

function Strategy:start(task)
  local wrapped = self.opts.wrap_opts or {}
  local opts = vim.tbl_extend('force', wrapped, {
    cwd = task.cwd,
    env = task.env,
    on_exit = function(job, code, event)
      if wrapped.on_exit then
        wrapped.on_exit(job, code, event)
      end
      task:on_exit(code)
    end,
  })
  self.job_id = overseer.builtin.jobstart(task.cmd, opts)
end

function Strategy.get_bufnr() end

function Strategy:stop()
  vim.fn.jobstop(self.job_id)
end

function Strategy.reset() end

function Strategy.dispose() end

return Strategy

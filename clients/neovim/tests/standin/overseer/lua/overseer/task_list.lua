local M = {}

local tasks = {}

function M.add(task)
  tasks[task.id] = task
end

function M.remove(task)
  tasks[task.id] = nil
end

function M.list_tasks()
  return vim.tbl_values(tasks)
end

return M

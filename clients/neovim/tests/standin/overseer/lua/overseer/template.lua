local M = {}

local templates = {}

function M.register(template)
  table.insert(templates, template)
end

---Also asks the providers, which run programs to list tasks.
function M.find(name, callback)
  require('overseer.template.make').generator(function(made)
    for _, template in ipairs(vim.list_extend(made, templates)) do
      if template.name == name then
        return callback(template)
      end
    end
    callback(nil)
  end)
end

return M

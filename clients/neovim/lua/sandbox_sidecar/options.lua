---Checks the options that a function of the plugin is called with.
local display = require('sandbox_sidecar.display')

local M = {}

---Raises an error that names an option which does not exist, or whose value has
---the wrong type. A misspelt option would otherwise have no effect, and that of
---a time limit or a project would go unnoticed.
---@param name string The function.
---@param options any
---@param types table<string, string[]> For each option, what type() may return.
function M.check(name, options, types)
  if type(options) ~= 'table' then
    error(('%s: expected a table of options, found %s'):format(name, type(options)), 3)
  end
  for option, value in pairs(options) do
    local allowed = types[option]
    if not allowed then
      local known = vim.tbl_keys(types)
      table.sort(known)
      error(
        ('%s: unknown option %s. It has: %s'):format(
          name,
          display.quote(tostring(option)),
          table.concat(known, ', ')
        ),
        3
      )
    elseif not vim.tbl_contains(allowed, type(value)) then
      error(
        ('%s: option %s: expected %s, found %s'):format(
          name,
          display.quote(option),
          table.concat(allowed, ' or '),
          type(value)
        ),
        3
      )
    end
  end
end

return M

local M = {}

function M.load(definition)
  local name = type(definition) == 'table' and definition[1] or definition
  local strategy = require('overseer.strategy.' .. name)
  local instance = strategy.new(type(definition) == 'table' and definition or nil)
  instance.name = name
  return instance
end

return M

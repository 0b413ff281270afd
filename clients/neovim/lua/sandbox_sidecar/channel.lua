---A channel of the editor's, for what other plugins send to a terminal by
---|chansend()|. What they would send to the channel of |nvim_open_term()| is
---shown on the screen, and reaches no program.
local log = require('sandbox_sidecar.log')

local M = {}

---Opens a channel. Both ends of its socket are in this editor. The socket has a
---name only until they are connected, in the editor's own temporary directory.
---@param on_data fun(bytes: string) Receives what is sent. |api-fast|
---@return integer? id nil if there is no channel, which the log explains.
---@return fun() close Closes the channel: sending fails from then on.
function M.open(on_data)
  local listener, path = vim.uv.new_pipe(), vim.fn.tempname()
  local reader ---@type uv.uv_pipe_t?
  local id ---@type integer?
  local function close()
    for _, handle in ipairs({ listener, reader }) do
      if not handle:is_closing() then
        handle:close()
      end
    end
    if id then
      pcall(vim.fn.chanclose, id)
    end
  end
  local ok, err = listener:bind(path)
  if ok then
    ok, err = listener:listen(1, function()
      reader = vim.uv.new_pipe()
      listener:accept(reader)
      listener:close() -- which removes its name
      reader:read_start(function(_, bytes)
        if bytes then
          on_data(bytes)
        end
      end)
    end)
  end
  if ok then
    ok, err = pcall(vim.fn.sockconnect, 'pipe', path)
  end
  if not ok then
    close()
    log.write('warn', 'open a channel for a terminal at %s: %s', path, tostring(err))
    return nil, close
  end
  id = err --[[@as integer]]
  return id, close
end

return M

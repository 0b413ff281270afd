local M = {}

---Returns a random UUID (version 4). The client chooses session ids, because
---output can precede the answer to a spawn.
---@return string
function M.new()
  local bytes = { vim.uv.random(16):byte(1, 16) }
  bytes[7] = bit.bor(bit.band(bytes[7], 0x0f), 0x40)
  bytes[9] = bit.bor(bit.band(bytes[9], 0x3f), 0x80)
  return ('%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x'):format(
    unpack(bytes)
  )
end

return M

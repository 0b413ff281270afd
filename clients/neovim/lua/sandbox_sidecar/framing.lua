---Messages on the wire: a header that says how long the body is, an empty line, and the body. It is done here and not by vim.lsp.rpc
---because that queues a callback per message without limit: a flood of output freezes the editor for seconds.
local protocol = require('sandbox_sidecar.protocol_gen')

local M = {}

---The longest header that is not yet nonsense, in bytes.
local MAX_HEADER = 4096

---@param message table
---@return string # Header and body.
function M.encode(message)
  local body = vim.json.encode(message)
  return ('Content-Length: %d\r\n\r\n%s'):format(#body, body)
end

---A decoder takes bytes as they come and gives bodies back. Chunks are joined only when a whole message has come, and what was used of
---one is skipped, not cut off: a flood of messages costs time in proportion to its bytes, however they are cut.
---@class sandbox_sidecar.Decoder
---@field private chunks table<integer, string>
---@field private first integer Index of the oldest chunk.
---@field private last integer Index of the newest one; less than first where there is none.
---@field private used integer How many bytes of the oldest chunk are used up.
---@field private buffered integer Bytes that are not used up.
---@field private expected integer? Length of the body whose header has been read.
local Decoder = {}
Decoder.__index = Decoder

---@return sandbox_sidecar.Decoder
function M.decoder()
  return setmetatable({ chunks = {}, first = 1, last = 0, used = 0, buffered = 0 }, Decoder)
end

---@param chunk string
function Decoder:feed(chunk)
  self.last = self.last + 1
  self.chunks[self.last] = chunk
  self.buffered = self.buffered + #chunk
end

---@return integer # How many bytes wait to be decoded.
function Decoder:size()
  return self.buffered
end

---Makes the oldest chunk one that holds so many unused bytes, or all there are.
---@private
---@param bytes integer
---@return string
function Decoder:join(bytes)
  local have = -self.used
  local to = self.first - 1
  while have < bytes and to < self.last do
    to = to + 1
    have = have + #self.chunks[to]
  end
  if to > self.first then
    local joined = table.concat(self.chunks, '', self.first, to)
    for i = self.first, to - 1 do
      self.chunks[i] = nil
    end
    self.first = to
    self.chunks[to] = joined
  end
  return self.chunks[self.first] or ''
end

---Skips bytes, all of which are in the oldest chunk.
---@private
---@param bytes integer
function Decoder:skip(bytes)
  self.buffered = self.buffered - bytes
  self.used = self.used + bytes
  if self.first <= self.last and self.used == #self.chunks[self.first] then
    self.chunks[self.first] = nil
    self.first = self.first + 1
    self.used = 0
  end
end

---@private
---@return string? err
function Decoder:header()
  -- A header is short: it is nearly always within the oldest chunk.
  local text = self:join(1)
  local from, to = text:find('\r\n\r\n', self.used + 1, true)
  if not from then
    text = self:join(MAX_HEADER)
    from, to = text:find('\r\n\r\n', self.used + 1, true)
  end
  if not from then
    return self.buffered >= MAX_HEADER and 'a header without end' or nil
  end
  local lines = text:sub(self.used + 1, from + 1)
  local length ---@type integer?
  for name, value in lines:gmatch('([^\r\n:]+):[ \t]*([^\r\n]*)\r\n') do
    if name:lower() == 'content-length' then
      length = tonumber(value:match('^%d+$'))
    end
  end
  if not length then
    return ('a header without a length: %q'):format(lines)
  end
  if length > protocol.max_content_length then
    return ('a message of %d bytes'):format(length)
  end
  self:skip(to - self.used)
  self.expected = length
end

---@return string? body # nil: not all of it has come.
---@return string? err # The stream cannot be read any further.
function Decoder:next()
  if not self.expected and self.buffered > 0 then
    local err = self:header()
    if err then
      return nil, err
    end
  end
  local length = self.expected
  if not length or self.buffered < length then
    return nil
  end
  local body = self:join(length):sub(self.used + 1, self.used + length)
  self:skip(length)
  self.expected = nil
  return body
end

return M

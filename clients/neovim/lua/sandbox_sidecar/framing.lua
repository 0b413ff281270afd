---The wire format: a header with the body's length, an empty line, and the
---body. vim.lsp.rpc does not serve here. It queues a callback per message
---without limit, so a flood of output freezes the editor for seconds.
local protocol = require('sandbox_sidecar.protocol_gen')

local M = {}

---The longest valid header, in bytes.
local MAX_HEADER = 4096

---@param message table
---@return string # Header and body.
function M.encode(message)
  local body = vim.json.encode(message)
  return ('Content-Length: %d\r\n\r\n%s'):format(#body, body)
end

---Decodes bytes into message bodies. Chunks are joined only when a whole
---message has arrived, and used bytes are skipped, not cut off. The time is
---proportional to the number of bytes, however they are split.
---@class sandbox_sidecar.Decoder
---@field private chunks table<integer, string>
---@field private first integer Index of the oldest chunk.
---@field private last integer Index of the newest one; less than first if there is none.
---@field private used integer How many bytes of the oldest chunk are used.
---@field private buffered integer Unused bytes.
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

---Joins chunks until the oldest has this many unused bytes, or all there are.
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

---Skips bytes of the oldest chunk.
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
  -- A header is short, and nearly always within the oldest chunk.
  local text = self:join(1)
  local from, to = text:find('\r\n\r\n', self.used + 1, true)
  if not from then
    text = self:join(MAX_HEADER)
    from, to = text:find('\r\n\r\n', self.used + 1, true)
  end
  if not from then
    return self.buffered >= MAX_HEADER and 'the header has no end' or nil
  end
  local lines = text:sub(self.used + 1, from + 1)
  local length ---@type integer?
  for name, value in lines:gmatch('([^\r\n:]+):[ \t]*([^\r\n]*)\r\n') do
    if name:lower() == 'content-length' then
      length = tonumber(value:match('^%d+$'))
    end
  end
  if not length then
    return ('the header has no length: %q'):format(lines)
  end
  if length > protocol.max_content_length then
    return ('a message of %d bytes is too long'):format(length)
  end
  self:skip(to - self.used)
  self.expected = length
end

---@return string? body # nil until the whole body has arrived.
---@return string? err # Set if the stream is invalid.
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

---Removes the escape sequence that writes the clipboard (OSC 52) from a stream.
---
---Any program in a terminal can send it, and Neovim obeys since 0.11. Sandboxed
---code could write a command that the user pastes into another shell.
---
---The emulator (libvterm) is lenient: it skips control characters within an
---introducer, accepts leading zeros, and counts numbers modulo 2^32. So only
---numbers of up to nine plain digits pass. A removed sequence leaves an ST
---("ESC \") behind, so that the text around it cannot form a new sequence. An
---ESC at the end of a chunk waits for the next one.
local M = {}

local ESC = '\27'
local ST = '\27\\'

---@class sandbox_sidecar.Filter
---@field private held string The start of an incomplete sequence.
---@field private dropping boolean Whether the stream is within a removed sequence.
local Filter = {}
Filter.__index = Filter

---@return sandbox_sidecar.Filter
function M.filter()
  return setmetatable({ held = '', dropping = false }, Filter)
end

---@param bytes string
---@return string
function Filter:pass(bytes)
  if not self.dropping and self.held == '' and not bytes:find(ESC, 1, true) then
    return bytes
  end
  local text = self.held .. bytes
  self.held = ''
  local out, at = {}, 1
  while at <= #text do
    if self.dropping then
      at = self:skip(text, at)
    else
      local from = text:find(ESC, at, true)
      out[#out + 1] = text:sub(at, (from or 0) - 1)
      if not from then
        break
      end
      local keep, to = self:classify(text, from)
      out[#out + 1] = keep
      at = to
    end
  end
  return table.concat(out)
end

---Decides what happens to the ESC at a position.
---@private
---@param text string
---@param from integer
---@return string keep The replacement of the bytes.
---@return integer to Where to continue.
function Filter:classify(text, from)
  local second = text:sub(from + 1, from + 1)
  if second == '' then
    self.held = ESC
    return '', #text + 1
  elseif second:find('[%z\1-\23\25\28-\31\127]') then
    -- The emulator would execute the control character and continue the
    -- sequence. No harmless program sends that.
    return ST, from + 1
  elseif second ~= ']' then
    return ESC, from + 1
  end
  local digits = text:match('^%d*', from + 2)
  local after = text:sub(from + 2 + #digits, from + 2 + #digits)
  if after == '' and #digits <= 9 then
    self.held = text:sub(from)
    return '', #text + 1
  elseif #digits > 9 or tonumber(digits) == 52 or after:find('[%z\1-\6\8-\23\25\28-\31\127]') then
    self.dropping = true
    return ST, from + 2 + #digits
  end
  return text:sub(from, from + 1 + #digits), from + 2 + #digits
end

---Finds the end of the removed sequence.
---@private
---@param text string
---@param at integer
---@return integer # Where to continue.
function Filter:skip(text, at)
  local from = text:find('[\7\24\26\27]', at)
  if not from then
    return #text + 1
  end
  if text:byte(from) == 27 then
    local second = text:sub(from + 1, from + 1)
    if second == '' then
      self.held = ESC
      return #text + 1
    end
    self.dropping = false
    -- Any other sequence also ends this one, and is examined itself.
    return second == '\\' and from + 2 or from
  end
  self.dropping = false
  return from + 1
end

return M

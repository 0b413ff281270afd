---Takes the escape sequence that writes the clipboard (OSC 52) out of a stream.
---
---Whatever runs in a terminal can send it, and Neovim obeys since 0.11: code that is confined to a project could put a command into
---the clipboard, for the user to paste into a shell that is not. The emulator (libvterm) is lenient, so it is not enough to look for
---the plain sequence: it skips control characters within an introducer, takes leading zeros, and counts numbers modulo 2^32. Here only
---numbers of up to nine plain digits pass, and what is taken out leaves an ST ("ESC \") behind, so that what stood around it cannot come
---together to a new sequence. What comes after an ESC in the next chunk is waited for.
local M = {}

local ESC = '\27'
local ST = '\27\\'

---@class sandbox_sidecar.Filter
---@field private held string The start of a sequence, whose rest has not come.
---@field private dropping boolean Within a sequence that is taken out.
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

---Decides about the ESC at a position.
---@private
---@param text string
---@param from integer
---@return string keep What takes the place of the bytes.
---@return integer to Where to go on.
function Filter:classify(text, from)
  local second = text:sub(from + 1, from + 1)
  if second == '' then
    self.held = ESC
    return '', #text + 1
  elseif second:find('[%z\1-\23\25\28-\31\127]') then
    -- The emulator would carry the control character out and still wait for the
    -- rest of the sequence; no program means that.
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

---Finds the end of what is being taken out.
---@private
---@param text string
---@param at integer
---@return integer # Where to go on.
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
    -- Any other sequence ends this one, too, and counts itself.
    return second == '\\' and from + 2 or from
  end
  self.dropping = false
  return from + 1
end

return M

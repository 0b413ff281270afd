---Escapes untrusted text for display, by the rules of the sidecar's Go package
---display. Messages from the sidecar are escaped already. This is for text that
---only the editor knows, such as command lines. Unescaped, it could forge a
---line, reverse the text beside it, or be a link.
local M = {}

---The longest text that text() returns, in characters.
local MAX_CHARS = 120
---The longest text that is processed whole, in bytes. A longer one loses its
---middle first.
local MAX_BYTES = 8192
---How many combining marks one letter may carry.
local MAX_MARKS = 2

---Ranges of characters that are invisible, have no width, are for private use,
---or change the direction of text.
local HIDDEN = {
  { 0x00, 0x1f },
  { 0x7f, 0xa0 },
  { 0xad, 0xad },
  { 0x34f, 0x34f },
  { 0x61c, 0x61c },
  { 0x115f, 0x1160 },
  { 0x1680, 0x1680 },
  { 0x17b4, 0x17b5 },
  { 0x180b, 0x180f },
  { 0x2000, 0x200f },
  { 0x2028, 0x202f },
  { 0x205f, 0x206f },
  { 0x2800, 0x2800 },
  { 0x3000, 0x3000 },
  { 0x3164, 0x3164 },
  { 0xd800, 0xf8ff },
  { 0xfe00, 0xfe0f },
  { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 },
  { 0xfff0, 0xfffc },
  { 0xfffe, 0xffff },
  { 0x1bca0, 0x1bca3 },
  { 0x1d159, 0x1d159 },
  { 0x1d173, 0x1d17a },
  { 0xe0000, 0x10ffff },
}

---Escapes with a name.
local NAMED = { [0x09] = '\\t', [0x0a] = '\\n', [0x0d] = '\\r' }

---@param code integer
---@return boolean
local function hidden(code)
  for _, range in ipairs(HIDDEN) do
    if code <= range[2] then
      return code >= range[1]
    end
  end
  return false
end

---@param code integer
---@return string
local function escaped(code)
  return NAMED[code]
    or (code < 0x80 and '\\x%02x' or code < 0x10000 and '\\u%04x' or '\\U%08x'):format(code)
end

---Decodes the character at a position. Overlong forms are errors.
---@param s string
---@param at integer
---@return integer? code nil for a byte that is not UTF-8.
---@return integer size
local function decode(s, at)
  local first = s:byte(at)
  if first < 0x80 then
    return first, 1
  end
  local size = first >= 0xf0 and 4 or first >= 0xe0 and 3 or 2
  local code = first % (size == 2 and 0x20 or size == 3 and 0x10 or 0x08)
  for i = at + 1, at + size - 1 do
    local byte = s:byte(i)
    if not byte or byte < 0x80 or byte > 0xbf then
      return nil, 1
    end
    code = code * 64 + byte - 0x80
  end
  local minimum = ({ [2] = 0x80, [3] = 0x800, [4] = 0x10000 })[size]
  if first < 0xc2 or first > 0xf4 or code < minimum or code > 0x10ffff then
    return nil, 1
  end
  return code, size
end

---Splits a text into units that shortening keeps whole: a character with its
---marks, or an escape.
---@param s string
---@param all boolean Whether to escape Markdown characters and backslashes, too.
---@return string[]
local function units(s, all)
  local list = {}
  local mark_count = MAX_MARKS -- marks on the last letter
  local at = 1
  while at <= #s do
    local code, size = decode(s, at)
    local char = s:sub(at, at + size - 1)
    local before, after = s:sub(at - 1, at - 1), s:sub(at + size)
    if at == 1 then
      before = ''
    end
    -- A mark without a letter is as wide as a letter.
    local mark = code and code >= 0x300 and vim.api.nvim_strwidth('a' .. char) == 1
    mark_count = mark and mark_count + 1
      or (code and (code >= 0x80 or char:find('%w')) and 0 or MAX_MARKS)
    if not code then
      list[#list + 1] = ('\\x%02x'):format(s:byte(at))
    elseif char == '\\' and all then
      list[#list + 1] = '\\\\'
    elseif
      (all and (char == '`' or char == '<' or char == ' ' and before == ' '))
      or (char == '(' and (before == ']' or before == '$'))
      or (char == '/' and before == ':' and after:sub(1, 1) == '/')
      or (char == '&' and after:find('^[#%w]*;') ~= nil)
      or hidden(code)
      or (mark and mark_count > MAX_MARKS)
    then
      list[#list + 1] = escaped(code)
    elseif mark then
      list[#list] = list[#list] .. char
    else
      list[#list + 1] = char
    end
    at = at + size
  end
  return list
end

---@param s string
---@param all boolean
---@return string[]
local function scan(s, all)
  if #s <= MAX_BYTES then
    return units(s, all)
  end
  local list = units(s:sub(1, MAX_BYTES / 2), all)
  list[#list + 1] = '…'
  return vim.list_extend(list, units(s:sub(-MAX_BYTES / 2), all))
end

---@param list string[] Characters and escapes.
---@param limit integer
---@return string
local function shorten(list, limit)
  local widths, sum = {}, 0
  for i, unit in ipairs(list) do
    widths[i] = vim.fn.strchars(unit)
    sum = sum + widths[i]
  end
  if sum <= limit then
    return table.concat(list)
  end
  -- Takes units from both ends in turn, until the next one does not fit.
  local first, last, length, front = 0, #list + 1, 1, true
  while true do
    local next_one = front and first + 1 or last - 1
    length = length + widths[next_one]
    if length > limit then
      break
    end
    first, last = front and next_one or first, front and last or next_one
    front = not front
  end
  return table.concat(list, '', 1, first) .. '…' .. table.concat(list, '', last)
end

---Text on one line, shortened in the middle. Nothing in it moves the cursor, is
---invisible, or acts as Markdown or a link.
---@param s any
---@param limit? integer The longest result, in characters. Default: 120.
---@return string
function M.text(s, limit)
  return shorten(scan(tostring(s), true), limit or MAX_CHARS)
end

---Text in quotation marks, for use within a sentence.
---@param s any
---@param limit? integer
---@return string
function M.quote(s, limit)
  local list = scan(tostring(s), true)
  for i, unit in ipairs(list) do
    list[i] = unit == '"' and '\\"' or unit
  end
  return '"' .. shorten(list, limit or MAX_CHARS) .. '"'
end

---A path in quotation marks, with "~" for the home directory.
---@param path string
---@return string
function M.path(path)
  return M.quote(vim.startswith(path, '/') and vim.fn.fnamemodify(path, ':~') or path)
end

---A whole sentence whose values were escaped before. It is not shortened, and
---safe text is returned unchanged.
---@param s any
---@return string
function M.line(s)
  return table.concat(units(tostring(s), false))
end

---Several lines, each escaped.
---@param s string
---@return string[]
function M.lines(s)
  return vim.tbl_map(M.line, vim.split(s, '\n', { plain = true }))
end

return M

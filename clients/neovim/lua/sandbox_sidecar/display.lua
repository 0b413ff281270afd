---Text that others chose, made fit for a person's eyes: what package display of the sidecar does, for what only the editor knows, such as
---command lines. Shown raw, such text can forge a second line, turn around what stands beside it, or be a link.
local M = {}

---The most characters that text() returns.
local MAX_CHARS = 120
---The most bytes that are looked at. A longer text loses its middle first.
local MAX_BYTES = 8192
---How many combining marks may stand on one letter.
local MAX_MARKS = 2

---Characters without a shape or a width of their own, of private use, or that change the direction of text; from, to.
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

---Names of characters that have one.
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

---Reads the character at a position, which must be the shortest form of one.
---@param s string
---@param at integer
---@return integer? code nil: a byte that is not UTF-8.
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

---Splits a text into what may not be cut apart: a character with its marks, an escape.
---@param s string
---@param all boolean What Markdown acts upon is escaped, too, and so is the backslash.
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
    -- Alone, a mark would be as wide as a letter.
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

---@param list string[] Each is one character wide, or an escape.
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
  -- From both ends in turn, until the next one does not fit.
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

---A text on one line, in which nothing moves a cursor, is invisible, or is Markdown or a link. A long one loses its middle.
---@param s any
---@param limit? integer The most characters. Default: 120.
---@return string
function M.text(s, limit)
  return shorten(scan(tostring(s), true), limit or MAX_CHARS)
end

---The same between quotation marks, for use inside of a sentence.
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

---A path as people know it, between quotation marks.
---@param path string
---@return string
function M.path(path)
  return M.quote(vim.startswith(path, '/') and vim.fn.fnamemodify(path, ':~') or path)
end

---A whole sentence, whose values were made fit before: the last defence where it is shown. It loses nothing, and what is fit comes back
---as it is.
---@param s any
---@return string
function M.line(s)
  return table.concat(units(tostring(s), false))
end

---Several lines, each made fit.
---@param s string
---@return string[]
function M.lines(s)
  return vim.tbl_map(M.line, vim.split(s, '\n', { plain = true }))
end

return M

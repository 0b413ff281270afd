---Turns terminal output into plain text, for programs and models.
local M = {}

---Removes escape sequences. If a program overwrote a line, as progress bars do,
---its last state stays.
---@param bytes string
---@return string
function M.plain(bytes)
  local text = bytes
    -- Strings: OSC, DCS, SOS, PM, APC, up to BEL or ST.
    :gsub('\27%][^\7\27]*\7', '')
    :gsub('\27[%]PX^_][^\27]*\27\\', '')
    -- CSI, then every other escape sequence.
    :gsub('\27%[[\48-\63]*[\32-\47]*[\64-\126]', '')
    :gsub('\27[\32-\47]*[\48-\126]', '')
    :gsub('\r+\n', '\n')
  text = text:gsub('[^\n]*\r([^\n\r])', '%1')
  -- A character and a backspace: bold text in manual pages.
  text = text:gsub('[^\n\8]\8', '')
  return (text:gsub('[%z\1-\8\11-\31\127]', ''))
end

return M

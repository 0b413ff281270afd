local H = require('harness')
local osc52 = require('sandbox_sidecar.osc52')

local T = H.set()

local PAYLOAD = ';c;' .. vim.base64.encode('rm -rf ~')

-- Each reaches the clipboard of an emulator as lenient as libvterm.
local attacks = {
  plain = '\27]52' .. PAYLOAD .. '\7',
  ['ended by ST'] = '\27]52' .. PAYLOAD .. '\27\\',
  ['leading zeros'] = '\27]00052' .. PAYLOAD .. '\7',
  ['modulo 2^32'] = '\27]4294967348' .. PAYLOAD .. '\7',
  ['a control character within the introducer'] = '\27\n]52' .. PAYLOAD .. '\7',
  ['NUL within the introducer'] = '\27\0]52' .. PAYLOAD .. '\7',
  ['BEL within the introducer'] = '\27\7]52' .. PAYLOAD .. '\7',
  ['NUL within the number'] = '\27]5\0002' .. PAYLOAD .. '\7',
  ['LF within the number'] = '\27]5\n2' .. PAYLOAD .. '\7',
  ['DEL after the number'] = '\27]52\127' .. PAYLOAD .. '\7',
  ['two ESC'] = '\27\27]52' .. PAYLOAD .. '\7',
  ['after an unfinished CSI'] = '\27[1;\27]52' .. PAYLOAD .. '\7',
  ['put together from two sides'] = '\27\27]52;x\7]52' .. PAYLOAD .. '\7',
  ['after one that was cancelled'] = '\27]52;\24\27]52' .. PAYLOAD .. '\7',
}

-- Harmless, unless a filter removes the middle and leaves nothing in its place.
local woven = {
  ['within the number'] = '\27]5\27]52;x\0072' .. PAYLOAD .. '\7',
  ['within the introducer'] = '\27\27]52;x\7]52' .. PAYLOAD .. '\7',
}

local function filtered(stream, cuts)
  local filter, out, from = osc52.filter(), {}, 1
  for _, cut in ipairs(cuts) do
    out[#out + 1] = filter:pass(stream:sub(from, cut))
    from = cut + 1
  end
  out[#out + 1] = filter:pass(stream:sub(from))
  return table.concat(out)
end

T['other output passes unchanged, however it is split'] = function()
  local stream = 'text\27[1;31mred\27[0m \27]0;title\7\27]8;;http://x\27\\link\27]8;;\27\\ \27]521;x\7\27]5;y\7\27]133;A\7\27P1$r\27\\'
    .. '\27]P0000000\27(B zwölf €\27'
  for cut = 0, #stream do
    -- The last ESC is held back, because the next chunk may continue it.
    H.eq(filtered(stream, { cut }), stream:sub(1, -2))
  end
end

T['the clipboard sequence is removed, the text around it stays'] = function()
  for name, attack in pairs(attacks) do
    for cut = 0, #attack do
      local out = filtered('before ' .. attack .. ' after', { 7 + cut })
      H.eq({ name, cut, out:find('before ', 1, true), out:sub(-6) }, { name, cut, 1, ' after' })
    end
  end
  H.eq(filtered('a' .. attacks.plain .. 'b', {}), 'a\27\\b')
end

-- An emulator in a child whose clipboard is a variable.
local function emulator()
  local child = H.child()
  child.lua([[
    _G.copied = 0
    local function copy()
      _G.copied = _G.copied + 1
    end
    local function paste()
      return { '' }
    end
    vim.g.clipboard = { name = 'test', copy = { ['+'] = copy, ['*'] = copy }, paste = { ['+'] = paste, ['*'] = paste } }
    local osc52 = require('sandbox_sidecar.osc52')
    function _G.feed(bytes, cut)
      _G.copied = 0
      local channel = vim.api.nvim_open_term(vim.api.nvim_create_buf(false, true), { force_crlf = false })
      if cut then
        local filter = osc52.filter()
        vim.api.nvim_chan_send(channel, filter:pass(bytes:sub(1, cut)))
        bytes = filter:pass(bytes:sub(cut + 1))
      end
      vim.api.nvim_chan_send(channel, bytes)
      -- An event writes the clipboard, and events keep their order.
      local done = false
      vim.defer_fn(function()
        done = true
      end, 20)
      vim.wait(10000, function()
        return done
      end, 1)
      return _G.copied
    end
  ]])
  return child
end

T['every attack reaches a real emulator, and none does through the filter'] = function()
  local child = emulator()
  local works = vim.version.ge(vim.version(), { 0, 11 })
  for name, attack in pairs(attacks) do
    -- Before 0.11 the emulator has no clipboard.
    H.eq({ name, child.lua_get('_G.feed(...)', { attack }) > 0 }, { name, works })
    for _, cut in ipairs({ 0, 1, 2, 3, 4, math.floor(#attack / 2), #attack }) do
      H.eq({ name, cut, child.lua_get('_G.feed(...)', { attack, cut }) }, { name, cut, 0 })
    end
  end
end

T['removing a sequence does not form another'] = function()
  local child = emulator()
  local works = vim.version.ge(vim.version(), { 0, 11 })
  for name, attack in pairs(woven) do
    local naive = attack:gsub('\27%]52;x\7', '')
    H.eq({ name, child.lua_get('_G.feed(...)', { naive }) > 0 }, { name, works })
    for cut = 0, #attack do
      H.eq({ name, cut, child.lua_get('_G.feed(...)', { attack, cut }) }, { name, cut, 0 })
    end
  end
end

T['random parts of the sequence never reach the clipboard'] = function()
  local child = emulator()
  local alphabet = {
    '\27',
    ']',
    '5',
    '2',
    ';',
    'c',
    '\7',
    '\27\\',
    '\0',
    '\n',
    '\24',
    '[',
    '\127',
    'P',
    '0',
    '52',
    '\27]',
    'QQ==',
  }
  local reached = child.lua_get(
    [[(function(alphabet)
    math.randomseed(52)
    local plain, behind = 0, 0
    for _ = 1, 300 do
      local bytes = {}
      for i = 1, 60 do
        bytes[i] = alphabet[math.random(#alphabet)]
      end
      -- Half of the noise ends in an attack, so that the unfiltered half of the
      -- test is not empty.
      local text = table.concat(bytes) .. (math.random(2) == 1 and '\27\\\27]52;c;QQ==\7' or '')
      plain = plain + feed(text)
      behind = behind + feed(text, math.random(0, #text))
    end
    return { plain > 0, behind }
  end)(...)]],
    { alphabet }
  )
  H.eq(reached, { vim.version.ge(vim.version(), { 0, 11 }), 0 })
end

T['the option lets it through, the default does not'] = function()
  for _, allowed in ipairs({ true, false }) do
    local child = H.child(nil, { setup = { clipboard = allowed } })
    child.lua([[
      _G.copied = ''
      local function copy(lines)
        _G.copied = table.concat(lines, '\n')
      end
      local function paste()
        return { '' }
      end
      vim.g.clipboard = { name = 'test', copy = { ['+'] = copy, ['*'] = copy }, paste = { ['+'] = paste, ['*'] = paste } }
    ]])
    H.terminal(child, { cmd = [[printf '\033]52;c;aGFybQ==\007after\n'; exit 0]] })
    H.until_true(child, '_G.t.status ~= nil')
    H.until_text(child, 'after')
    local works = allowed and vim.version.ge(vim.version(), { 0, 11 })
    if works then
      H.until_true(child, '_G.copied == "harm"')
    end
    H.eq(child.lua_get('_G.copied'), works and 'harm' or '')
    child.stop()
  end
end

return T

-- The cases are those of the Go package display: both must agree.
local H = require('harness')
local display = require('sandbox_sidecar.display')

local T = H.set()

---Replaces escapes such as "\u202e" by the character, as Go does.
local function go(text)
  text = text:gsub('\\U(%x%x%x%x%x%x%x%x)', function(code)
    return vim.fn.nr2char(tonumber(code, 16), true)
  end)
  return (
    text:gsub('\\u(%x%x%x%x)', function(code)
      return vim.fn.nr2char(tonumber(code, 16), true)
    end)
  )
end

for _, case in ipairs({
  { 'a plain path', '/home/ü/My Documents/x (1).txt', '/home/ü/My Documents/x (1).txt' },
  { 'decomposed letters', '/home/u\\u0308', go('/home/u\\u0308') },
  { 'line ends', 'a\nb\r\tc\\u2028d\\u0085e', [[a\nb\r\tc\u2028d\u0085e]] },
  { 'an escape sequence', '\27[2Jx\155\127', [[\x1b[2Jx\x9b\x7f]] },
  { 'another direction', 'a\\u202egnp.exe\\u2066', [[a\u202egnp.exe\u2066]] },
  {
    'no width',
    'a\\u200bb\\ufeffc\\u00add\\u3164e\\ufe0f\\U000e0041',
    [[a\u200bb\ufeffc\u00add\u3164e\ufe0f\U000e0041]],
  },
  {
    'a command link',
    '[click](command:workbench.action.quit)',
    [[[click]\x28command:workbench.action.quit)]],
  },
  { 'an address', 'https://example.com/x', [[https:\x2f/example.com/x]] },
  { 'a list of paths', '/a:/b', '/a:/b' },
  { 'an icon', '$(error)', [[$\x28error)]] },
  { 'HTML and code', '<b>`x`', [[\x3cb>\x60x\x60]] },
  { 'a backslash', [[a\b]], [[a\\b]] },
  { 'what is not UTF-8', 'a\255b\192\175\237\160\128', [[a\xffb\xc0\xaf\ud800]] },
  {
    'a pile of marks',
    'a\\u0301\\u0302\\u0303\\u0304',
    go('a\\u0301\\u0302') .. [[\u0303\u0304]],
  },
  { 'a mark on what is no letter', '\\u0338a/\\u0338', [[\u0338a/\u0338]] },
  { 'blank symbols', 'a\\u2800b\\U0001d159c', [[a\u2800b\U0001d159c]] },
  { 'many blanks', 'a b   c', [[a b \x20\x20c]] },
  { 'characters by name', 'R&D &lt;&#x202e; & co;', [[R&D \x26lt;\x26#x202e; & co;]] },
  { 'wide blanks', 'a\\u00a0\\u3000b', [[a\u00a0\u3000b]] },
}) do
  T[case[1]] = function()
    local fit = display.text(go(case[2]))
    H.eq(fit, case[3])
    H.eq(display.line(fit), fit)
  end
end

T['a long text loses its middle, and no escape is split'] = function()
  local fit = display.text('/start/' .. ('\27'):rep(500) .. '/end')
  H.eq(vim.fn.strchars(fit) <= 120 and vim.fn.strchars(fit) > 110, true)
  H.eq((fit:gsub('\\x1b', '')), '/start/…/end')
  H.eq(display.text(('x'):rep(2 ^ 20), 20), 'xxxxxxxxxx…xxxxxxxxx')
end

T['a quotation mark in a quotation is escaped'] = function()
  H.eq(display.quote('a"b'), [["a\"b"]])
end

T['a sentence keeps its quotations, and unquoted text is escaped'] = function()
  local fit = 'use `sandbox-sidecar init`:  '
    .. display.quote('C:\\x\n[a](command:b)\27')
    .. ' <DIR>'
  H.eq(display.line(fit), fit)
  H.eq(
    display.line('a\n\27[31m' .. go('\\u202e') .. '[x](command:y) http://z'),
    [[a\n\x1b[31m\u202e[x]\x28command:y) http:\x2f/z]]
  )
  H.eq(display.lines('a\nb\27c'), { 'a', 'b\\x1bc' })
end

return T

local H = require('harness')
local plain = require('sandbox_sidecar.text').plain

local T = H.set()

for _, case in ipairs({
  { 'lines end with LF', 'a\r\nb\r\n', 'a\nb\n' },
  { 'ONLCR twice', 'a\r\r\nb', 'a\nb' },
  { 'colours', '\27[1;31mred\27[0m \27[38;2;1;2;3mrgb\27[m', 'red rgb' },
  { 'titles', '\27]0;title\7text\27]2;t\27\\end', 'textend' },
  { 'other strings', '\27P1$r0m\27\\a\27_x\27\\b', 'ab' },
  { 'charsets and keypads', '\27(B\27=\27>x\0277y\0278', 'xy' },
  { 'a progress bar', '10%\r50%\r100%\r\ndone', '100%\ndone' },
  { 'a last carriage return', 'half\r', 'half' },
  { 'bold as in man pages', 'b\8bo\8ol\8ld\8d', 'bold' },
  { 'tabs stay', 'a\tb', 'a\tb' },
  { 'text stays', 'zwölf €\n', 'zwölf €\n' },
}) do
  T[case[1]] = function()
    H.eq(plain(case[2]), case[3])
  end
end

return T

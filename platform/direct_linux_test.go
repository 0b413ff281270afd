package platform

import (
	"os"
	"testing"
)

// The linker is read from untrusted bytes: no beginning of a program is too
// short, and no byte of its headers may be anything.
func TestLinkerOf(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	head := program[:min(len(program), 4096)]
	whole, plain := linkerOf(head)
	if !plain || whole == "" || whole[0] != '/' {
		t.Fatalf("the linker of /bin/sh is %q, %t", whole, plain)
	}
	for length := range head {
		if linker, plain := linkerOf(head[:length]); plain && linker != whole {
			t.Errorf("of %d bytes: %q", length, linker)
		}
	}
	for at := range 64 + 56*16 {
		for _, value := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			changed := append([]byte{}, head...)
			changed[at] = value
			linkerOf(changed) // must return
		}
	}
	for name, text := range map[string]string{"a script": "#!/bin/sh\n", "nothing": "", "text": "hello\n"} {
		if _, plain := linkerOf([]byte(text)); plain {
			t.Errorf("%s is taken for a program", name)
		}
	}
	// A program without a linker, which is what this test is.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !isPlain(self) || isPlain("/") || isPlain("/no/such/program") {
		t.Error("this test is a program; a directory is none")
	}
}

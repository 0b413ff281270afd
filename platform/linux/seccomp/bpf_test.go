package seccomp

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// seccompData is struct seccomp_data.
type seccompData struct {
	nr   int32
	arch uint32
	ip   uint64
	args [6]uint64
}

// seccompDataSize is sizeof(struct seccomp_data).
const seccompDataSize = 64

// bytes returns an array, so that running a program allocates nothing: the
// tests do that millions of times.
func (d *seccompData) bytes() (out [seccompDataSize]byte) {
	binary.LittleEndian.PutUint32(out[offsetNr:], uint32(d.nr))
	binary.LittleEndian.PutUint32(out[offsetArch:], d.arch)
	binary.LittleEndian.PutUint64(out[offsetArch+4:], d.ip)
	for i, arg := range d.args {
		binary.LittleEndian.PutUint64(out[offsetArgs+8*i:], arg)
	}
	return out
}

// run interprets a program as the kernel does. The test fails if the kernel
// would not accept the program: if it jumps out of itself, loads a word that is
// not aligned, or ends without a return.
func run(t testing.TB, p Program, d seccompData) Action {
	data := d.bytes()
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		in := &p[pc]
		yes := false
		switch in.Code {
		case bpfLoad:
			if in.K%4 != 0 || int(in.K)+4 > len(data) {
				t.Fatalf("instruction %d loads at %d", pc, in.K)
			}
			a = binary.LittleEndian.Uint32(data[in.K:])
		case bpfAnd:
			a &= in.K
		case bpfJump:
			pc += int(in.K)
			continue
		case bpfJumpEq:
			yes = a == in.K
		case bpfJumpGE:
			yes = a >= in.K
		case bpfJumpAny:
			yes = a&in.K != 0
		case bpfReturn:
			return Action(in.K)
		default:
			t.Fatalf("instruction %d has the code %#x", pc, in.Code)
		}
		if in.Code != bpfJumpEq && in.Code != bpfJumpGE && in.Code != bpfJumpAny {
			continue
		}
		if yes {
			pc += int(in.JT)
		} else {
			pc += int(in.JF)
		}
	}
	t.Fatalf("the program ends without an answer for %+v:\n%s", d, p)
	return 0
}

// interesting are values for which faults in masks, halves and signs show.
var interesting = []uint64{
	0, 1, 2, 3, 10, 16, 17, 40, 0x5412, 0x541c,
	0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1<<32 | 1, 1<<32 | 0x5412, 1<<63 | 2,
	1<<63 | 0x541c, 0x10000000, 0x00010f00, 0x80, 0x1200011, 0x400, 0x410, 0x8000, 0x8011, 0xfffffffffffffefe,
	1<<32 | 0x10000000,
	1<<64 - 1,
}

func value(random *rand.Rand) uint64 {
	switch random.IntN(4) {
	case 0:
		return random.Uint64()
	case 1:
		return uint64(random.IntN(64))
	case 2:
		return 1 << random.IntN(64)
	}
	return interesting[random.IntN(len(interesting))]
}

func TestBuilder_TestsWholeArguments(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		mask, want, arg := value(random), value(random), random.IntN(6)
		want &= mask
		var d seccompData
		for i := range d.args {
			d.args[i] = value(random)
		}
		if random.IntN(2) == 0 {
			d.args[arg] = want | value(random)&^mask
		}
		for name, question := range map[string]struct {
			ask  func(b *builder, yes, no label)
			want bool
		}{
			"equal": {func(b *builder, yes, no label) {
				b.ifEqual64(arg, mask, want, yes, no)
			}, d.args[arg]&mask == want},
			"some": {func(b *builder, yes, no label) { b.ifAny64(arg, mask, yes, no) }, d.args[arg]&mask != 0},
		} {
			b := &builder{}
			yes, no := b.label(), b.label()
			question.ask(b, yes, no)
			b.place(yes)
			b.answer(1)
			b.place(no)
			b.answer(2)
			program, err := b.build()
			if err != nil {
				t.Fatal(err)
			}
			if got := run(t, program, d) == 1; got != question.want {
				t.Fatalf("%s: argument %#x, mask %#x, value %#x: got %t\n%s", name, d.args[arg], mask, want,
					got, program)
			}
		}
	}
}

// A chain of comparisons with all returns at its end tests every distance
// around the limit of a conditional jump.
func TestBuilder_JumpsAreAsLongAsNeeded(t *testing.T) {
	t.Parallel()
	for _, length := range []int{1, 2, 84, 85, 126, 127, 128, 129, 253, 254, 255, 256, 257, 258, 300, 600, 900} {
		b := &builder{}
		answers := make([]label, length)
		b.loadNr()
		for i := range answers {
			answers[i] = b.label()
			if i%2 == 0 {
				b.ifEqual(uint32(i), answers[i], next)
				continue
			}
			other := b.label()
			b.ifAny(^uint32(i), other, answers[i]) // a subset of i's bits also jumps to answers[i]
			b.place(other)
			b.ifEqual(uint32(i), answers[i], next)
		}
		b.answer(9999)
		for i, l := range answers {
			b.place(l)
			b.answer(uint32(i))
		}
		program, err := b.build()
		if err != nil {
			t.Fatalf("length %d: %v", length, err)
		}
		for nr := range length + 2 {
			want := Action(9999)
			for i := range length { // the model: the first comparison that jumps
				if nr == i || i%2 == 1 && nr&^i == 0 {
					want = Action(i)
					break
				}
			}
			if got := run(t, program, seccompData{nr: int32(nr)}); got != want {
				t.Fatalf("length %d: %d is answered by %d, want %d", length, nr, got, want)
			}
		}
	}
}

func TestBuilder_RejectsProgramsThatTheKernelWould(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(b *builder){
		"no such place": func(b *builder) { b.jump(b.label()) },
		"backward": func(b *builder) {
			l := b.label()
			b.place(l)
			b.ifEqual(1, l, next)
		},
		"too long": func(b *builder) {
			for range maxProgram + 1 {
				b.answer(0)
			}
		},
	} {
		b := &builder{}
		write(b)
		if program, err := b.build(); err == nil {
			t.Errorf("%s: was built:\n%s", name, program)
		}
	}
}

func TestProgram_SurvivesEncoding(t *testing.T) {
	t.Parallel()
	for _, filtering := range []Filtering{{}, {Offline: true, Sockets: true}} {
		want, err := Filter("amd64", filtering)
		if err != nil {
			t.Fatal(err)
		}
		got, err := programOf(want.bytes())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: %d instructions became %d, %v", filtering, len(want), len(got), err)
		}
	}
	for _, code := range [][]byte{nil, {}, make([]byte, 7), make([]byte, 9)} {
		if p, err := programOf(code); err == nil {
			t.Errorf("%d bytes are taken for %v", len(code), p)
		}
	}
}

package seccomp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Instruction is an instruction of classic BPF, with the fields of struct
// sock_filter (linux/filter.h).
type Instruction struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

// Program is a filter of system calls. It reads struct seccomp_data and returns
// an [Action].
type Program []Instruction

// instructionSize is sizeof(struct sock_filter).
const instructionSize = 8

// bytes encodes the program for the stage; see programOf.
func (p Program) bytes() []byte {
	code := make([]byte, 0, len(p)*instructionSize)
	for _, in := range p {
		code = append(binary.LittleEndian.AppendUint16(code, in.Code), in.JT, in.JF)
		code = binary.LittleEndian.AppendUint32(code, in.K)
	}
	return code
}

// programOf decodes what bytes has encoded.
func programOf(code []byte) (Program, error) {
	if len(code) == 0 || len(code)%instructionSize != 0 {
		return nil, fmt.Errorf("read filter of system calls: %d bytes are no program", len(code))
	}
	p := make(Program, len(code)/instructionSize)
	for i := range p {
		in := code[i*instructionSize:]
		p[i] = Instruction{
			Code: binary.LittleEndian.Uint16(in), JT: in[2], JF: in[3], K: binary.LittleEndian.Uint32(in[4:]),
		}
	}
	return p, nil
}

// The operations that filters use (linux/bpf_common.h).
const (
	bpfLoad    = 0x20 // LD|W|ABS: load the word at offset K
	bpfAnd     = 0x54 // ALU|AND|K
	bpfJump    = 0x05 // JMP|JA
	bpfJumpEq  = 0x15 // JMP|JEQ|K
	bpfJumpGE  = 0x35 // JMP|JGE|K, unsigned
	bpfJumpAny = 0x45 // JMP|JSET|K: any bit of K is set
	bpfReturn  = 0x06 // RET|K
)

// Offsets in struct seccomp_data (linux/seccomp.h). The low word of an argument
// comes before the high one: all machines that this package knows are
// little-endian.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16
)

// maxProgram is BPF_MAXINSNS, in instructions.
const maxProgram = 4096

// label is a place in a program that jumps lead to. next is the place directly
// after the jump.
type label int

const next label = 0

// piece is an instruction whose jumps are not resolved yet, or the place of a
// label.
type piece struct {
	Instruction
	yes, no label // targets of a conditional jump; an unconditional one has yes
	mark    label // if not next: this label is here, and no instruction
}

// builder assembles a program. Jumps only lead forward, as the kernel requires.
type builder struct {
	pieces []piece
	labels label
}

// label returns a new label, which is not placed yet.
func (b *builder) label() label {
	b.labels++
	return b.labels
}

// place puts a label here.
func (b *builder) place(l label) { b.pieces = append(b.pieces, piece{mark: l}) }

func (b *builder) emit(code uint16, k uint32) {
	b.pieces = append(b.pieces, piece{Instruction: Instruction{Code: code, K: k}})
}

func (b *builder) loadNr()   { b.emit(bpfLoad, offsetNr) }
func (b *builder) loadArch() { b.emit(bpfLoad, offsetArch) }

// loadLow and loadHigh load half of an argument. Arguments are counted from 0.
func (b *builder) loadLow(arg int)  { b.emit(bpfLoad, offsetArgs+8*uint32(arg)) }
func (b *builder) loadHigh(arg int) { b.emit(bpfLoad, offsetArgs+8*uint32(arg)+4) }

func (b *builder) and(mask uint32)      { b.emit(bpfAnd, mask) }
func (b *builder) answer(action uint32) { b.emit(bpfReturn, action) }

func (b *builder) jump(to label) {
	b.pieces = append(b.pieces, piece{Instruction: Instruction{Code: bpfJump}, yes: to})
}

func (b *builder) ifEqual(k uint32, yes, no label) {
	b.pieces = append(b.pieces, piece{Instruction: Instruction{Code: bpfJumpEq, K: k}, yes: yes, no: no})
}

func (b *builder) ifAtLeast(k uint32, yes, no label) {
	b.pieces = append(b.pieces, piece{Instruction: Instruction{Code: bpfJumpGE, K: k}, yes: yes, no: no})
}

func (b *builder) ifAny(mask uint32, yes, no label) {
	b.pieces = append(b.pieces, piece{Instruction: Instruction{Code: bpfJumpAny, K: mask}, yes: yes, no: no})
}

// ifAny64 jumps to yes if any bit of the mask is set in the argument. It loads
// no word in which the mask has no bits. Neither label may be next: the test
// takes several jumps, so that no single place comes after them.
func (b *builder) ifAny64(arg int, mask uint64, yes, no label) {
	low, high := uint32(mask), uint32(mask>>32)
	if low != 0 {
		b.loadLow(arg)
		b.ifAny(low, yes, next)
	}
	if high != 0 {
		b.loadHigh(arg)
		b.ifAny(high, yes, next)
	}
	b.jump(no)
}

// ifEqual64 jumps to yes if the masked argument equals the value. The value has
// no bits outside the mask. See ifAny64.
func (b *builder) ifEqual64(arg int, mask, value uint64, yes, no label) {
	for _, word := range []struct {
		load        func(int)
		mask, value uint32
	}{{b.loadLow, uint32(mask), uint32(value)}, {b.loadHigh, uint32(mask >> 32), uint32(value >> 32)}} {
		if word.mask == 0 {
			continue
		}
		word.load(arg)
		if word.mask != 1<<32-1 {
			b.and(word.mask)
		}
		b.ifEqual(word.value, next, no)
	}
	b.jump(yes)
}

// build resolves the jumps. A conditional jump reaches 255 instructions. One
// that leads further goes to an unconditional jump directly after it, which
// reaches everywhere. An error is a bug of this package: a label without a
// place, a jump backward, or a program that is too long.
func (b *builder) build() (Program, error) {
	long := make([][2]bool, len(b.pieces)) // the sides that need an unconditional jump
	for {
		at, places := b.layout(long)
		program, grown, err := b.resolve(at, places, long)
		if err != nil {
			return nil, err
		}
		if !grown {
			if len(program) > maxProgram {
				return nil, fmt.Errorf("build filter of %d instructions: the kernel takes %d", len(program), maxProgram)
			}
			return program, nil
		}
	}
}

// layout returns the number of the first instruction of each piece, and the
// place of each label.
func (b *builder) layout(long [][2]bool) (at []int, places map[label]int) {
	at, places = make([]int, len(b.pieces)), map[label]int{}
	position := 0
	for i, p := range b.pieces {
		at[i] = position
		if p.mark != next {
			places[p.mark] = position
			continue
		}
		position++
		for _, side := range long[i] {
			if side {
				position++
			}
		}
	}
	return at, places
}

// resolve writes the instructions for a layout. If a jump leads too far, it is
// marked as long, and grown is true: the layout must be made again.
func (b *builder) resolve(at []int, places map[label]int, long [][2]bool) (program Program, grown bool, err error) {
	for i, p := range b.pieces {
		if p.mark != next {
			continue
		}
		after := at[i] + 1 // offsets count from the next instruction
		behind := after
		for _, side := range long[i] {
			if side {
				behind++
			}
		}
		distance := func(to label) int {
			if to == next {
				return behind - after
			}
			place, placed := places[to]
			if !placed || place < behind {
				err = fmt.Errorf("build filter: instruction %d jumps to label %d, which is not ahead of it", at[i], to)
			}
			return place - after
		}
		switch p.Code {
		case bpfJump:
			program = append(program, Instruction{Code: bpfJump, K: uint32(distance(p.yes))})
		case bpfJumpEq, bpfJumpGE, bpfJumpAny:
			sides := [2]int{distance(p.yes), distance(p.no)}
			var jumps []Instruction
			for side, length := range sides {
				if long[i][side] {
					sides[side] = len(jumps)
					jumps = append(jumps, Instruction{Code: bpfJump, K: uint32(length - len(jumps) - 1)})
				} else if length > 255 {
					long[i][side], grown = true, true
				}
			}
			program = append(program, Instruction{Code: p.Code, K: p.K, JT: uint8(sides[0]), JF: uint8(sides[1])})
			program = append(program, jumps...)
		default:
			program = append(program, p.Instruction)
		}
		if err != nil {
			return nil, false, err
		}
	}
	return program, grown, nil
}

// String lists the program for readers and golden files. A jump is written with
// the number of the instruction that it leads to.
func (p Program) String() string {
	var b strings.Builder
	for i, in := range p {
		fmt.Fprintf(&b, "%03d ", i)
		switch in.Code {
		case bpfLoad:
			fmt.Fprintf(&b, "load %s", word(in.K))
		case bpfAnd:
			fmt.Fprintf(&b, "and %#x", in.K)
		case bpfJump:
			fmt.Fprintf(&b, "jump %03d", i+1+int(in.K))
		case bpfJumpEq:
			fmt.Fprintf(&b, "if = %#x %03d else %03d", in.K, i+1+int(in.JT), i+1+int(in.JF))
		case bpfJumpGE:
			fmt.Fprintf(&b, "if >= %#x %03d else %03d", in.K, i+1+int(in.JT), i+1+int(in.JF))
		case bpfJumpAny:
			fmt.Fprintf(&b, "if & %#x %03d else %03d", in.K, i+1+int(in.JT), i+1+int(in.JF))
		case bpfReturn:
			fmt.Fprintf(&b, "return %s", Action(in.K))
		default:
			fmt.Fprintf(&b, "%#x %d %d %#x", in.Code, in.JT, in.JF, in.K)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func word(offset uint32) string {
	switch {
	case offset == offsetNr:
		return "nr"
	case offset == offsetArch:
		return "arch"
	case offset >= offsetArgs && offset%8 == 0:
		return fmt.Sprintf("arg%d.low", (offset-offsetArgs)/8)
	case offset >= offsetArgs && offset%8 == 4:
		return fmt.Sprintf("arg%d.high", (offset-offsetArgs)/8)
	}
	return fmt.Sprintf("[%d]", offset)
}

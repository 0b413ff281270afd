package handshake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Order is what the sidecar wants executed.
type Order struct {
	// Program is a path, or a name to look up in the PATH of Env. If it is
	// empty, the stage confines itself, reports and exits (a probe).
	Program string
	// Argv holds the arguments, the program's own name first.
	Argv []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory, absolute.
	Dir string
	// InSignalDomain makes the stage enter a signal domain; see
	// lifecycle.SignalDomainGroup. It needs Orders, and a leader that was
	// started for it.
	InSignalDomain bool
	// Full executes the program only if every protection that is requested is
	// enforced; see Enforcement.Full.
	Full bool
	// Terminal is the terminal that the stage opens; nil if the sidecar opens
	// it or there is none.
	Terminal *Terminal
	// Ignored are the signals that the program starts with ignored; all others
	// have their default action.
	Ignored []int
	// Inherited are the descriptors above 2 that the stage was started with for
	// the program. A stage that confines itself keeps some of them only.
	Inherited []Inherited
	// Orders are the backend's; nil leaves the process unconfined.
	Orders Orders
}

// Inherited is a descriptor that the program is to get from its caller.
type Inherited struct {
	// Number is the descriptor in the program.
	Number int `json:"number"`
	// At is the descriptor in the stage, which needs some numbers itself.
	At int `json:"at"`
}

// Terminal describes a terminal to open. It becomes the session's controlling
// terminal and its standard output and error.
type Terminal struct {
	// Cols and Rows are its size.
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
	// NoInput leaves standard input as it is.
	NoInput bool `json:"noInput,omitempty"`
}

// Orders are instructions of a backend to its part in the stage. Only the two
// know their form.
type Orders []byte

// wireOrder is the JSON form of an Order. Names and arguments are bytes and
// need not be UTF-8.
type wireOrder struct {
	Program        RawString   `json:"program"`
	Argv           []RawString `json:"argv"`
	Env            []RawString `json:"env"`
	Dir            RawString   `json:"dir"`
	InSignalDomain bool        `json:"inSignalDomain,omitempty"`
	Full           bool        `json:"full,omitempty"`
	Terminal       *Terminal   `json:"terminal,omitempty"`
	Ignored        []int       `json:"ignored,omitempty"`
	Inherited      []Inherited `json:"inherited,omitempty"`
	// Orders is the length of the orders, which follow the JSON as they are;
	// 0 if there are none.
	Orders int `json:"orders,omitempty"`
}

// Encode returns the order as ReadOrder reads it.
func (o Order) Encode() ([]byte, error) {
	if o.Orders != nil && len(o.Orders) == 0 {
		return nil, errors.New("the orders are empty, and would leave the process unconfined")
	}
	message, err := json.Marshal(wireOrder{
		Program: RawString(o.Program), Argv: RawStrings(o.Argv), Env: RawStrings(o.Env), Dir: RawString(o.Dir),
		InSignalDomain: o.InSignalDomain, Full: o.Full, Terminal: o.Terminal, Ignored: o.Ignored,
		Inherited: o.Inherited, Orders: len(o.Orders),
	})
	return append(message, o.Orders...), err
}

// ReadOrder reads an order to its last byte, and nothing after it.
func ReadOrder(r io.Reader) (Order, error) {
	var wire wireOrder
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(&wire); err != nil {
		return Order{}, fmt.Errorf("read order: %w", err)
	}
	order := Order{
		Program: string(wire.Program), Argv: PlainStrings(wire.Argv), Env: PlainStrings(wire.Env),
		Dir: string(wire.Dir), InSignalDomain: wire.InSignalDomain, Full: wire.Full, Terminal: wire.Terminal,
		Ignored: wire.Ignored, Inherited: wire.Inherited,
	}
	if wire.Orders == 0 {
		return order, nil
	}
	order.Orders = make(Orders, wire.Orders)
	if _, err := io.ReadFull(io.MultiReader(decoder.Buffered(), r), order.Orders); err != nil {
		return Order{}, fmt.Errorf("read orders: %w", err)
	}
	return order, nil
}

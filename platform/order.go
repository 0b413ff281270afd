package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

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
		InSignalDomain: o.InSignalDomain, Full: o.Full, Terminal: o.Terminal, Orders: len(o.Orders),
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

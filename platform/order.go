package platform

import "encoding/json"

// wireOrder is the JSON form of an Order. Names and arguments are bytes and
// need not be UTF-8.
type wireOrder struct {
	Program        RawString   `json:"program"`
	Argv           []RawString `json:"argv"`
	Env            []RawString `json:"env"`
	Dir            RawString   `json:"dir"`
	InSignalDomain bool        `json:"inSignalDomain,omitempty"`
	Terminal       *Terminal   `json:"terminal,omitempty"`
	Orders         Orders      `json:"orders"`
}

// MarshalJSON keeps every byte; see RawString.
func (o Order) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireOrder{
		Program: RawString(o.Program), Argv: RawStrings(o.Argv), Env: RawStrings(o.Env), Dir: RawString(o.Dir),
		InSignalDomain: o.InSignalDomain, Terminal: o.Terminal, Orders: o.Orders,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *Order) UnmarshalJSON(data []byte) error {
	var wire wireOrder
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*o = Order{
		Program: string(wire.Program), Argv: PlainStrings(wire.Argv), Env: PlainStrings(wire.Env), Dir: string(wire.Dir),
		InSignalDomain: wire.InSignalDomain, Terminal: wire.Terminal, Orders: wire.Orders,
	}
	return nil
}

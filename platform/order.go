package platform

import "encoding/json"

// wireOrder is an Order on its way. Names and arguments are bytes to the
// kernel, and need not be the UTF-8 that a JSON string would turn them into: a
// working directory with a Latin-1 name must arrive as it is.
type wireOrder struct {
	Program        []byte    `json:"program"`
	Argv           [][]byte  `json:"argv"`
	Env            [][]byte  `json:"env"`
	Dir            []byte    `json:"dir"`
	InSignalDomain bool      `json:"inSignalDomain,omitempty"`
	Terminal       *Terminal `json:"terminal,omitempty"`
	Orders         Orders    `json:"orders"`
}

// MarshalJSON keeps every byte; see UnmarshalJSON.
func (o Order) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireOrder{
		Program: []byte(o.Program), Argv: toBytes(
			o.Argv), Env: toBytes(o.Env), Dir: []byte(o.Dir), InSignalDomain: o.InSignalDomain, Terminal: o.Terminal, Orders: o.Orders,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *Order) UnmarshalJSON(data []byte) error {
	var wire wireOrder
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*o = Order{
		Program: string(wire.Program), Argv: toStrings(wire.Argv), Env: toStrings(
			wire.Env), Dir: string(wire.Dir), InSignalDomain: wire.InSignalDomain, Terminal: wire.Terminal, Orders: wire.Orders,
	}
	return nil
}

func toBytes(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

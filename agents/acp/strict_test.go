package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// fromAgent reads a line of an agent.
func fromAgent(line string) (message, bool, error) {
	return read([]byte(line), true, strict{leave: isTerminalAuth, safe: safeMethods})
}

// What of an agent's message passes, in the form that passes; or why none does,
// with the id that is answered.
func TestAgent_WhatPasses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	const none = `{"id":1,"result":{"authMethods":[]}}`
	const own = `{"id":"a"}`
	const signIn = `{"id":"b","type":"terminal","args":["x"],"env":{"HOME":"/x"}}`
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, test := range map[string]struct {
		line, passes string
		why          error
		id           string
	}{
		"a request":      {`{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"a":[1,-0.5e+3,null,true,false]}}`, "", nil, ""},
		"a notification": {`{"jsonrpc":"2.0","method":"_a.b/c"}`, "", nil, ""},
		"a result":       {`{"jsonrpc":"2.0","id":"x","result":{}}`, "", nil, ""},
		"no result":      {`{"jsonrpc":"2.0","id":-7,"result":null}`, "", nil, ""},
		"an error":       {`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"","data":{"a":1}}}`, "", nil, ""},
		"its error":      {`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, "", nil, ""},
		"blanks": {
			" \t{ \"id\" : 1 ,\r\n\"result\" : { } } \r\n", `{"id":1,"result":{}}`, nil, "",
		},
		"one form of a text": {
			`{"id":1,"result":{"\u0061":"\/\u00e9\ud83d\ude00\u000A\t\u003c"}}`,
			`{"id":1,"result":{"a":"/é😀\n\u0009<"}}`, nil, "",
		},
		"ends of lines": {
			"{\"id\":1,\"result\":{\"a\":\"\u2028\u2029\u0085\x7f\"}}",
			`{"id":1,"result":{"a":"\u2028\u2029\u0085\u007f"}}`, nil, "",
		},
		"half a pair": {
			`{"id":1,"result":{"a":"\ud83dx\ude00\ud83d\ud83d\ude00"}}`,
			`{"id":1,"result":{"a":"` + "\ufffdx\ufffd\ufffd😀" + `"}}`, nil, "",
		},
		"NUL in a text":    {`{"id":1,"result":{"a":"\u0000"}}`, "", nil, ""},
		"another member":   {`{"id":1,"result":{},"authMethods":[` + signIn + `]}`, `{"id":1,"result":{}}`, nil, ""},
		"half in a key":    {`{"id":1,"result":{"\ud83d":1}}`, "", errKey, "1"},
		"NUL in a key":     {`{"id":1,"result":{"terminal-auth\u0000":1}}`, "", errKey, "1"},
		"lines in a key":   {`{"id":1,"result":{"a\n\tb":1}}`, `{"id":1,"result":{"a\n\u0009b":1}}`, nil, ""},
		"NUL in a long":    {`{"id":1,"result":{"terminal-auth\u0000` + long + `":1}}`, "", errKey, "1"},
		"a key twice":      {`{"id":1,"result":{"a":1,"a":1}}`, "", errTwice, "1"},
		"escaped twice":    {`{"id":1,"result":{"a":1,"b":2,"\u0061":1}}`, "", errTwice, "1"},
		"twice below":      {`{"id":1,"method":"x","params":{"a":[{"b":{"c":1,"c":1}}]}}`, "", errTwice, "1"},
		"ids twice":        {`{"id":1,"id":2,"result":{}}`, "", errTwice, ""},
		"methods twice":    {`{"id":1,"method":"terminal/create","method":"x"}`, "", errTwice, "1"},
		"another case":     {`{"id":1,"Method":"x","method":"y"}`, "", errCase, "1"},
		"a long s":         {`{"id":1,"result":{},"paramſ":{}}`, "", errCase, "1"},
		"nested":           {`{"id":1,"result":{"a":` + deep(maxDepth-2) + `}}`, "", nil, ""},
		"nested deeply":    {`{"id":1,"result":{"a":` + deep(maxDepth+1) + `}}`, "", errDepth, "1"},
		"nested for ever":  {`{"id":1,"result":{"a":` + strings.Repeat("[", 1<<20), "", errDepth, "1"},
		"many members":     {`{"id":1,"result":` + manyMembers(maxMembers+1) + `}`, "", errMany, "1"},
		"a huge number":    {`{"id":1,"result":{"a":1e400}}`, "", errNumber, "1"},
		"a long number":    {`{"id":1,"result":{"a":` + strings.Repeat("1", maxNumber+1) + `}}`, "", errNumber, "1"},
		"a zero before":    {`{"id":1,"result":{"a":01}}`, "", errSyntax, "1"},
		"a plus":           {`{"id":1,"result":{"a":+1}}`, "", errSyntax, "1"},
		"a point":          {`{"id":1,"result":{"a":1.}}`, "", errSyntax, "1"},
		"not a number":     {`{"id":1,"result":{"a":NaN}}`, "", errSyntax, "1"},
		"not UTF-8":        {"{\"id\":1,\"result\":{\"a\":\"\xff\"}}", "", errSyntax, "1"},
		"a half in UTF-8":  {"{\"id\":1,\"result\":{\"a\":\"\xed\xa0\x80\"}}", "", errSyntax, "1"},
		"raw NUL":          {"{\"id\":1,\"result\":{\"a\":\"\x00\"}}", "", errSyntax, "1"},
		"NUL between":      {"{\"id\":1,\x00\"result\":{}}", "", errSyntax, "1"},
		"a mark":           {"\ufeff" + `{"id":1,"result":{}}`, "", errSyntax, ""},
		"single quotes":    {`{"id":1,"result":{'a':1}}`, "", errSyntax, "1"},
		"a comma more":     {`{"id":1,"result":{},}`, "", errSyntax, "1"},
		"a remark":         {`{"id":1,/**/"result":{}}`, "", errSyntax, "1"},
		"an escape":        {`{"id":1,"result":{"a":"\x41"}}`, "", errSyntax, "1"},
		"a short escape":   {`{"id":1,"result":{"a":"\u+041"}}`, "", errSyntax, "1"},
		"text behind":      {`{"id":1,"result":{}}{"id":2}`, "", errSyntax, "1"},
		"cut":              {`{"id":1,"method":"x"`, "", errSyntax, "1"},
		"text":             {`no JSON at all`, "", errSyntax, ""},
		"a batch":          {`[{"id":1,"method":"x"}]`, "", errMessage, ""},
		"a number":         {`1`, "", errMessage, ""},
		"nothing":          {`{}`, "", errForm, ""},
		"version 1":        {`{"jsonrpc":"1.0","id":1,"method":"x"}`, "", errVersion, "1"},
		"a result, called": {`{"id":1,"method":"x","result":{}}`, "", errForm, "1"},
		"result and error": {`{"id":1,"result":{},"error":{"code":1,"message":""}}`, "", errForm, "1"},
		"no id":            {`{"result":{}}`, "", errForm, ""},
		"parameters alone": {`{"id":1,"result":{},"params":{}}`, "", errForm, "1"},
		"a list":           {`{"id":1,"result":[{"authMethods":[` + signIn + `]}]}`, "", errResult, "1"},
		"a text":           {`{"id":1,"result":"x"}`, "", errResult, "1"},
		"listed":           {`{"id":1,"method":"x","params":["a"]}`, "", errParams, "1"},
		"an error's list":  {`{"id":1,"error":[1,"x"]}`, "", errError, "1"},
		"an error's data":  {`{"id":1,"error":{"code":1,"message":"","data":[[` + signIn + `]]}}`, "", errError, "1"},
		"an error's text":  {`{"id":1,"error":"x"}`, "", errError, "1"},
		"a method's list":  {`{"id":1,"method":["x"]}`, "", errMethod, "1"},
		"no method":        {`{"id":1,"method":""}`, "", errMethod, "1"},
		"NUL in a method":  {`{"id":1,"method":"terminal/create\u0000x"}`, "", errMethod, "1"},
		"blank method":     {`{"id":1,"method":" terminal/create"}`, "", errMethod, "1"},
		"a long method":    {`{"id":1,"method":"` + long + `"}`, "", errMethod, "1"},
		"id null":          {`{"id":null,"method":"x"}`, "", errID, ""},
		"id 1.0":           {`{"id":1.0,"method":"x"}`, "", errID, ""},
		"id 1e0":           {`{"id":1e0,"method":"x"}`, "", errID, ""},
		"id -0":            {`{"id":-0,"method":"x"}`, "", errID, ""},
		"id 2^53":          {`{"id":9007199254740992,"method":"x"}`, "", errID, ""},
		"id of a list":     {`{"id":[1],"method":"x"}`, "", errID, ""},
		"a long id":        {`{"id":"` + long + `","method":"x"}`, "", errID, ""},
		"a sign in": {
			`{"id":1,"result":{"authMethods":[` + own + `,` + signIn + `]}}`,
			`{"id":1,"result":{"authMethods":[` + own + `]}}`, nil, "",
		},
		"in an error": {
			`{"id":1,"error":{"code":1,"message":"","data":{"authMethods":[` + signIn + `]}}}`,
			`{"id":1,"error":{"code":1,"message":"","data":{"authMethods":[]}}}`, nil, "",
		},
		"in a notification": {
			`{"method":"x","params":{"a":[{"AUTHMETHODS":[` + signIn + `]}]}}`,
			`{"method":"x","params":{"a":[{"AUTHMETHODS":[]}]}}`, nil, "",
		},
		"escaped": {
			`{"id":1,"result":{"\u0061uthMethods":[{"id":"b","type":"\u0074erminal"}]}}`, none, nil, "",
		},
		"no type, a command": {
			`{"id":1,"result":{"authMethods":[{"id":"b","command":"x","Env":{},"type":"agent"}]}}`,
			`{"id":1,"result":{"authMethods":[{"id":"b","type":"agent"}]}}`, nil, "",
		},
		"variables": {
			`{"id":1,"result":{"authMethods":[{"id":"b","type":"env_var","vars":[{"name":"HOME"}]}]}}`,
			none, nil, "",
		},
		"a type's case": {
			`{"id":1,"result":{"authMethods":[{"id":"b","Type":"terminal"}]}}`,
			`{"id":1,"result":{"authMethods":[{"id":"b"}]}}`, nil, "",
		},
		"methods as an object": {`{"id":1,"result":{"authMethods":{"0":` + signIn + `}}}`, none, nil, ""},
		"methods as lists":     {`{"id":1,"result":{"authMethods":[["b","x"]]}}`, none, nil, ""},
		"_meta": {
			`{"id":1,"result":{"_meta":{"terminal-auth":{"command":"x"},"b":1}}}`, `{"id":1,"result":{"_meta":{"b":1}}}`, nil, "",
		},
		"_meta anywhere": {
			`{"id":1,"method":"x","params":{"a":[{"_meta":{"a":1,"Terminal-Auth":{}}}],"terminal-auth":1}}`,
			`{"id":1,"method":"x","params":{"a":[{"_meta":{"a":1}}]}}`, nil, "",
		},
	} {
		msg, _, err := fromAgent(test.line)
		if !errors.Is(err, test.why) {
			t.Errorf("%s: %v, want %v", name, err, test.why)
			continue
		}
		if err != nil {
			if string(msg.id) != test.id {
				t.Errorf("%s: the id %s, want %s", name, msg.id, test.id)
			}
			continue
		}
		want := test.passes
		if want == "" {
			want = test.line
		}
		if string(msg.bytes) != want {
			t.Errorf("%s: passes %s, want %s", name, msg.bytes, want)
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// The agent does not learn what the editor would do outside, however that is
// written.
func TestHide_EveryForm(t *testing.T) {
	t.Parallel()
	for _, test := range [][2]string{
		{
			`{"clientCapabilities":{"terminal":true,"fs":{},"auth":{"terminal":1,"x":2},"_meta":{"terminal-auth":1,"y":2}}}`,
			`{"clientCapabilities":{"auth":{"x":2},"_meta":{"y":2}}}`,
		},
		{
			`{"ClientCapabilities":{"Terminal":true,"FS":{},"AUTH":{"Terminal":1}}}`,
			`{"ClientCapabilities":{"AUTH":{}}}`,
		},
		{
			`{"capabilities":{"a":[{"Terminal-Auth":1}]},"clientCapabilities":[true]}`,
			`{"capabilities":{"a":[{}]},"clientCapabilities":{}}`,
		},
		{`{"clientCapabilities":{"auth":[1]},"b":1}`, `{"clientCapabilities":{},"b":1}`},
		{`null`, `{}`},
		{``, `{}`},
	} {
		params, want := test[0], test[1]
		if got := string(hide([]byte(params))); got != want {
			t.Errorf("%s: %s, want %s", params, got, want)
		}
	}
}

// node is a JSON value as some lenient parser finds it.
type node struct {
	keys []string
	in   []node // values of the keys, or elements
	word any
}

// lenient reads a JSON text with all of its doubled keys.
func lenient(decoder *json.Decoder) (node, error) {
	token, err := decoder.Token()
	if err != nil {
		return node{}, err
	}
	open, is := token.(json.Delim)
	if !is {
		return node{word: token}, nil
	}
	n := node{word: open}
	for decoder.More() {
		if open == '{' {
			key, err := decoder.Token()
			if err != nil {
				return node{}, err
			}
			n.keys = append(n.keys, key.(string))
		}
		value, err := lenient(decoder)
		if err != nil {
			return node{}, err
		}
		n.in = append(n.in, value)
	}
	_, err = decoder.Token()
	return n, err
}

// simple is a key as the most lenient parser takes it: in any case, and up to a
// NUL.
func simple(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return strings.ToLower(strings.TrimSpace(text))
}

// get is the value of a key for a parser that takes the first, or the last.
func (n node) get(key string, last bool) (value node, found bool) {
	for i, name := range n.keys {
		if simple(name) == key {
			if value, found = n.in[i], true; !last {
				break
			}
		}
	}
	return value, found
}

// outsideIn says what in a message would have an editor act outside.
func outsideIn(n node, last bool) string {
	for i, in := range n.in {
		if n.keys != nil {
			switch simple(n.keys[i]) {
			case terminalAuth:
				return terminalAuth
			case strings.ToLower(authMethods):
				if in.word != json.Delim('[') {
					return "methods that are no list"
				}
				for _, method := range in.in {
					kind, _ := method.get("type", last)
					_, command := method.get("command", last)
					_, args := method.get("args", last)
					_, env := method.get("env", last)
					_, vars := method.get("vars", last)
					if method.word != json.Delim('{') || command || args || env || vars ||
						kind.word != nil && kind.word != "agent" {
						return "a method to sign in outside"
					}
				}
			}
		}
		if found := outsideIn(in, last); found != "" {
			return found
		}
	}
	return ""
}

// What passes was encoded here, is one message, and holds for no parser what the
// filter removes.
func FuzzAgent(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"a":["\ud83d\ude00\u0000",1e5,null]}}`,
		`{"id":1,"result":{"authMethods":[{"id":"a","type":"terminal"},{"id":"b","_meta":{"terminal-auth":{}}}]}}`,
		`{"id":"x","error":{"code":-32000,"message":"m","data":{"authMethods":{"a":1},"authMethods":[]}}}`,
		`{"id":1,"result":[],"method":"x","Method":"y"}`, `[{"id":1,"method":"fs/read_text_file"}]`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		msg, _, err := fromAgent(string(line))
		if err != nil {
			return
		}
		if bytes.ContainsAny(msg.bytes, "\r\n") || !json.Valid(msg.bytes) {
			t.Fatalf("no line: %q", msg.bytes)
		}
		again, _, err := fromAgent(string(msg.bytes))
		if err != nil || !bytes.Equal(again.bytes, msg.bytes) || again.left {
			t.Fatalf("another form: %q, then %q: %v", msg.bytes, again.bytes, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(msg.bytes))
		decoder.UseNumber()
		root, err := lenient(decoder)
		if err != nil || root.word != json.Delim('{') {
			t.Fatalf("no message: %q: %v", msg.bytes, err)
		}
		for _, last := range []bool{false, true} {
			if found := outsideIn(root, last); found != "" {
				t.Fatalf("%s passes: %q", found, msg.bytes)
			}
			method, _ := root.get("method", last)
			_, result := root.get("result", last)
			_, failed := root.get("error", last)
			if name, _ := method.word.(string); name != msg.method || (name != "") == (result || failed) {
				t.Fatalf("the method is %q for one and %q for another: %q", name, msg.method, msg.bytes)
			}
		}
	})
}

// The oracle of FuzzAgent finds what it looks for.
func TestOutsideIn_Finds(t *testing.T) {
	t.Parallel()
	for line, wants := range map[string][2]bool{ // for the first key, for the last
		`{"a":[{"Terminal-Auth":1}]}`:                                          {true, true},
		`{"authMethods":{}}`:                                                   {true, true},
		`{"authMethods":[{"type":"terminal","type":"agent"}]}`:                 {true, false},
		`{"authMethods":[{"type":"agent","type":"terminal"}]}`:                 {false, true},
		`{"authMethods\u0000x":[[]]}`:                                          {true, true},
		`{"authMethods":[{"command":"x"}]}`:                                    {true, true},
		`{"authMethods":[{"id":"a","type":"agent","_meta":{"b":1}}],"args":1}`: {false, false},
	} {
		root, err := lenient(json.NewDecoder(strings.NewReader(line)))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range wants {
			if found := outsideIn(root, i == 1); (found != "") != want {
				t.Errorf("%s: found %q", line, found)
			}
		}
	}
}

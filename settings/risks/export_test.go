package risks

// What the tests of advice read of the tables that no other package asks for as a
// whole.
var (
	NameServices = nameServices
	SecretNames  = secretNames
)

// Socket is a row of the table of sockets.
type Socket struct{ Path, Obeys string }

// Sockets are the rows of the table of sockets.
func Sockets() (list []Socket) {
	for _, one := range sockets {
		list = append(list, Socket{Path: one.path, Obeys: one.obeys})
	}
	return list
}

// Variables are the variables that move places, each with the value that moves its
// place below a directory, at the variable's name.
func Variables(dir string) map[string]string {
	values := map[string]string{}
	for _, m := range variables {
		values[m.variable] = dir + "/" + m.variable
		if len(m.options) > 0 {
			values[m.variable] = m.options[0] + " " + values[m.variable]
		}
	}
	return values
}

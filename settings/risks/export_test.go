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

// Variables are the names of the variables that move places.
func Variables() (names []string) {
	for _, m := range variables {
		names = append(names, m.variable)
	}
	return names
}

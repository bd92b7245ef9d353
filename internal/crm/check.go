package crm

import "invoicebridge/internal/problem"

// Check says what Submit would refuse about o itself, with pointers into it; nothing where it would be taken, unless
// its version is known with other content. It reads no database.
func Check(o Order) []problem.FieldError { return newIncoming(o).errors }

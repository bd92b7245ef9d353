// Package postgres is everything between this program and a PostgreSQL server that is not a query: the connection
// pool, the migrations (goose's and River's) with the check that holds a service back from a schema it does not
// know, and an embedded server for `make run` and the tests. The embedded server is never for production.
package postgres
